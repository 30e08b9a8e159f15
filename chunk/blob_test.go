package chunk

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// tog returns an index laid out as GDAL's COG driver does: position by position, 8 bytes between.
func tog(bands, down, across, tile int) *Index {
	x := &Index{
		Bands: bands, Height: down*tile - 3, Width: across*tile - 5, ChunkB: 1, ChunkH: tile, ChunkW: tile,
		DType: Uint16, Codec: Zstd, Predictor: Horizontal, Ranges: make([]Range, bands*down*across),
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	off := int64(1000)
	for i := range x.Ranges {
		x.Ranges[i] = Range{off, 1000 + rnd.Int64N(30000)}
		off += x.Ranges[i].Len + 8
	}
	return x
}

// relatives returns indexes of every other layout, by name.
func relatives() map[string]*Index {
	m := map[string]*Index{}
	edit := func(name string, f func(x *Index)) {
		x := tog(3, 4, 5, 64)
		f(x)
		m[name] = x
	}
	edit("tog", func(*Index) {})
	edit("nodata", func(x *Index) {
		nan, bits := math.NaN(), uint64(1<<63+1)
		x.NoData, x.NoDataBits = &nan, &bits
	})
	edit("big-endian strips, cut", func(x *Index) { x.BigEndian, x.CutEdge, x.CutRight = true, true, true })
	edit("pixel-interleaved", func(x *Index) { x.ChunkB, x.Inner, x.Ranges = 3, YXB, x.Ranges[:20] })
	edit("band-interleaved", func(x *Index) {
		off := int64(77)
		for g := range 3 {
			for p := range 20 {
				x.Ranges[p*3+g].Off = off
				off += x.Ranges[p*3+g].Len
			}
		}
	})
	edit("sparse", func(x *Index) {
		for _, i := range []int{0, 7, 8, 59} {
			x.Ranges[i] = Range{}
		}
	})
	edit("all sparse", func(x *Index) { clear(x.Ranges) })
	edit("one present", func(x *Index) {
		r := x.Ranges[9]
		clear(x.Ranges)
		x.Ranges[9] = r
	})
	edit("mask after each position", func(x *Index) {
		for i := range x.Ranges {
			x.Ranges[i].Off += int64(i / 3 * 91)
		}
	})
	edit("rewritten in place", func(x *Index) { x.Ranges[4].Off, x.Ranges[30].Off = 1<<40, 3 })
	edit("lengths of 40 bits", func(x *Index) { x.Codec, x.Ranges[4].Len, x.Ranges[5].Off = Raw, 1<<40, 1<<41 })
	edit("equal lengths, shared", func(x *Index) {
		for i := range x.Ranges {
			x.Ranges[i] = Range{5000, 100}
		}
	})
	edit("ends of the offsets", func(x *Index) {
		x.Codec = Raw
		x.Ranges[0] = Range{math.MaxInt64 - 1, 1}
		x.Ranges[1] = Range{0, math.MaxInt64}
	})
	m["one chunk"] = tog(1, 1, 1, 16)
	m["one band"] = tog(1, 7, 9, 16)
	return m
}

func TestBlobGivesBackTheIndex(t *testing.T) {
	for name, x := range relatives() {
		b := x.AppendBlob([]byte("kept"))
		if !bytes.HasPrefix(b, []byte("kept")) {
			t.Errorf("%s: dst was overwritten", name)
		}
		got, err := ParseBlob(b[4:], 1<<30)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !sameIndex(got, x) {
			t.Errorf("%s: got %+v\nwant %+v", name, got, x)
		}
	}
}

// sameIndex compares all fields; nodata by its bits.
func sameIndex(a, b *Index) bool {
	if (a.NoData == nil) != (b.NoData == nil) || a.NoData != nil && math.Float64bits(*a.NoData) != math.Float64bits(*b.NoData) {
		return false
	}
	ca, cb := *a, *b
	ca.NoData, cb.NoData = nil, nil
	return reflect.DeepEqual(ca, cb)
}

// A TOG costs the bits of its lengths: 2 bytes a tile here, and some 30 bytes in all.
func TestBlobSize(t *testing.T) {
	x := tog(13, 20, 20, 256)
	if n, most := len(x.AppendBlob(nil)), 15*len(x.Ranges)/8+40; n > most {
		t.Errorf("%d bytes for %d tiles, at most %d expected", n, len(x.Ranges), most)
	}
	x = tog(4, 4, 4, 512)
	if n := len(x.AppendBlob(nil)); n > 300 {
		t.Errorf("%d bytes for 64 tiles, at most 300 expected", n)
	}
}

func TestBlobRefusesOtherForms(t *testing.T) {
	for name, x := range relatives() {
		b := x.AppendBlob(nil)
		for n := range b {
			if _, err := ParseBlob(b[:n], 1<<30); fault.KindOf(err) == 0 {
				t.Errorf("%s: cut to %d of %d bytes: %v", name, n, len(b), err)
			}
		}
		if _, err := ParseBlob(append(bytes.Clone(b), 0), 1<<30); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: one byte too many: %v", name, err)
		}
		for bit := range 8 * len(b) {
			c := bytes.Clone(b)
			c[bit/8] ^= 1 << (bit % 8)
			if y, err := ParseBlob(c, 1<<30); err == nil && !bytes.Equal(y.AppendBlob(nil), c) {
				t.Errorf("%s: bit %d flipped gives an index with another blob", name, bit)
			}
		}
	}
	x := tog(1, 1, 1, 512)
	if _, err := ParseBlob(x.AppendBlob(nil), 1000); !errors.Is(err, fault.Limit) {
		t.Errorf("a chunk over the limit: %v", err)
	}
}

// FuzzIndexBlob: whatever parses is valid, is the only blob of its index, and has no more chunks
// than the blob has bits.
func FuzzIndexBlob(f *testing.F) {
	for _, x := range relatives() {
		f.Add(x.AppendBlob(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := ParseBlob(b, 1<<26)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		if err := x.Validate(-1, 1<<26); err != nil {
			t.Fatal(err)
		}
		if int64(len(x.Ranges)) > maxBlobChunks(len(b)) {
			t.Fatalf("%d chunks from %d bytes", len(x.Ranges), len(b))
		}
		if c := x.AppendBlob(nil); !bytes.Equal(b, c) {
			t.Fatalf("the index has another blob\n%x\n%x", b, c)
		}
	})
}
