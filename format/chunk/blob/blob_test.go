package blob

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tools/testkit/layouts"
)

func TestBlobGivesBackTheIndex(t *testing.T) {
	for name, x := range layouts.All() {
		b := Append([]byte("kept"), x)
		if !bytes.HasPrefix(b, []byte("kept")) {
			t.Errorf("%s: dst was overwritten", name)
		}
		got, err := Parse(b[4:], 1<<30)
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
func sameIndex(a, b *chunk.Index) bool {
	same := func(a, b *float64) bool {
		return (a == nil) == (b == nil) && (a == nil || math.Float64bits(*a) == math.Float64bits(*b))
	}
	alike := func(a, b []float64) bool {
		return slices.EqualFunc(a, b, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })
	}
	if !same(a.NoData, b.NoData) || !slices.EqualFunc(a.BandNoData, b.BandNoData, alike) {
		return false
	}
	ca, cb := *a, *b
	ca.NoData, cb.NoData, ca.BandNoData, cb.BandNoData = nil, nil, nil, nil
	return reflect.DeepEqual(ca, cb)
}

// TestBlobSize: a TOG costs the bits of its tile lengths: 2 bytes a tile here, and some 30 bytes in
// all.
func TestBlobSize(t *testing.T) {
	x := layouts.TOG(13, 20, 20, 256)
	if n, most := len(Append(nil, x)), 15*len(x.Ranges)/8+40; n > most {
		t.Errorf("%d bytes for %d tiles, at most %d expected", n, len(x.Ranges), most)
	}
	x = layouts.TOG(4, 4, 4, 512)
	if n := len(Append(nil, x)); n > 300 {
		t.Errorf("%d bytes for 64 tiles, at most 300 expected", n)
	}
}

func TestBlobRefusesOtherForms(t *testing.T) {
	for name, x := range layouts.All() {
		b := Append(nil, x)
		for n := range b {
			if _, err := Parse(b[:n], 1<<30); fault.KindOf(err) == 0 {
				t.Errorf("%s: cut to %d of %d bytes: %v", name, n, len(b), err)
			}
		}
		if _, err := Parse(append(bytes.Clone(b), 0), 1<<30); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: one byte too many: %v", name, err)
		}
		for bit := range 8 * len(b) {
			c := bytes.Clone(b)
			c[bit/8] ^= 1 << (bit % 8)
			if y, err := Parse(c, 1<<30); err == nil && !bytes.Equal(Append(nil, y), c) {
				t.Errorf("%s: bit %d flipped gives an index with another blob", name, bit)
			}
		}
	}
	for name, edit := range map[string]func(m *chunk.Index){
		"of another height": func(m *chunk.Index) { m.Height--; m.Ranges = m.Ranges[:m.Down()] },
		"of another width":  func(m *chunk.Index) { m.Width++ },
		"of two bands":      func(m *chunk.Index) { m.Bands, m.Ranges = 2, append(m.Ranges, m.Ranges...) },
		"of uint16":         func(m *chunk.Index) { m.DType = chunk.Uint16 },
		"with nodata":       func(m *chunk.Index) { m.NoData = new(float64) },
		"with two of them":  func(m *chunk.Index) { m.SetNoData([][]float64{{1, 2}}) },
		"with a scale":      func(m *chunk.Index) { m.Physical = []chunk.Linear{{Scale: 2, Offset: 0}} },
		"of predicted bits": func(m *chunk.Index) { m.Bits, m.Predictor = true, chunk.Horizontal },
		"with a chunk that is big": func(m *chunk.Index) {
			m.Codec = chunk.OpenZL // which is decoded whole
			m.ChunkH, m.ChunkW, m.CutEdge, m.Ranges = 1<<15, 1<<16, false, m.Ranges[:1]
		},
	} {
		x := layouts.TOG(3, 4, 5, 64)
		x.Mask = layouts.MaskOf(x, 100, false)
		if err := x.Validate(-1, 1<<30); err != nil {
			t.Fatal(err)
		}
		edit(x.Mask)
		if err := x.Validate(-1, 1<<30); fault.KindOf(err) == 0 {
			t.Errorf("a mask %s: %v", name, err)
		}
		if _, err := Parse(Append(nil, x), 1<<30); fault.KindOf(err) == 0 {
			t.Errorf("a mask %s in a blob: %v", name, err)
		}
	}
	short := layouts.TOG(3, 4, 5, 64)
	short.Mask = layouts.MaskOf(short, 100, false)
	short.Mask.Ranges = short.Mask.Ranges[:1]
	if err := short.Validate(-1, 1<<30); !errors.Is(err, fault.Corrupt) {
		t.Errorf("a mask with fewer byte ranges: %v", err)
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, physical := range [][]chunk.Linear{
		{}, {{Scale: 1}}, {{Scale: 2}, {Scale: 2}, {Scale: 2}}, {{Scale: 2}, {Scale: 3}}, {{Scale: nan}},
		{{Scale: 1, Offset: inf}, {Scale: 1}, {Scale: 1}},
	} {
		x := layouts.TOG(3, 4, 5, 64)
		x.Physical = physical
		if _, err := Parse(Append(nil, x), 1<<30); !errors.Is(err, fault.Corrupt) {
			t.Errorf("scales %v: %v", physical, err)
		}
	}
	x := layouts.TOG(1, 1, 1, 512)
	if _, err := Parse(Append(nil, x), 1000); !errors.Is(err, fault.Limit) {
		t.Errorf("a chunk over the limit: %v", err)
	}
}

// FuzzIndexBlob: a blob that parses is valid, is the only blob of its index, and has no more chunks
// than bits.
func FuzzIndexBlob(f *testing.F) {
	for _, x := range layouts.All() {
		f.Add(Append(nil, x))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := Parse(b, 1<<26)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		if err := x.Validate(-1, 1<<26); err != nil {
			t.Fatal(err)
		}
		n := len(x.Ranges)
		if x.Mask != nil {
			n += len(x.Mask.Ranges)
		}
		if int64(n) > maxChunks(len(b)) {
			t.Fatalf("%d chunks from %d bytes", n, len(b))
		}
		if c := Append(nil, x); !bytes.Equal(b, c) {
			t.Fatalf("the index has another blob\n%x\n%x", b, c)
		}
	})
}

// TestBlobOfVersion1: blobs of version 1, as catalogs hold them, do not change: an image without a
// mask has the same bytes as before masks existed.
func TestBlobOfVersion1(t *testing.T) {
	const blob = "43484b58" + "01" + "00" + "02" + "01" + "02" + // magic, version, flags, uint16, zstd, horizontal
		"01" + "03" + "05" + "10" + "10" + // one band of 3 by 5, chunks of 16 by 16
		"00" + "c801" + "01" + "00" + "e807" + "00" // walk, 200 bytes and no more, 1 bit, at 1000, no gap
	b, err := hex.DecodeString(blob)
	if err != nil {
		t.Fatal(err)
	}
	want := &chunk.Index{
		Bands: 1, Height: 3, Width: 5, ChunkB: 1, ChunkH: 16, ChunkW: 16, DType: chunk.Uint16, Codec: chunk.Zstd,
		Predictor: chunk.Horizontal, Ranges: []chunk.Range{{Off: 1000, Len: 200}},
	}
	got, err := Parse(b, 1<<20)
	if err != nil || !sameIndex(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if c := Append(nil, want); !bytes.Equal(c, b) {
		t.Errorf("blob %x, want %x", c, b)
	}
	b[4] = 5
	if _, err := Parse(b, 1<<20); !errors.Is(err, fault.Unsupported) {
		t.Errorf("version 5: %v", err)
	}
}

// TestNoBlobOfBlocks: an index that is read in blocks has no blob.
func TestNoBlobOfBlocks(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a blob of it")
		}
	}()
	Append(nil, &chunk.Index{Blocks: &chunk.Blocks{}})
}
