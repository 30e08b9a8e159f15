package tiff

import (
	"bufio"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/soak"
)

// bySource yields src as engines do, in reads of few bytes.
func bySource(src []byte) *bufio.Reader {
	return bufio.NewReaderSize(iotest.HalfReader(bytes.NewReader(src)), 16)
}

// inRows decodes chunk 0 of x row by row, in parts of random numbers of rows. Rows before from are skipped, and
// decoding stops before row end.
func inRows(d *chunk.Decoder, x *chunk.Index, src []byte, rnd *rand.Rand, from, end int) ([]byte, error) {
	rows, err := d.Rows(bySource(src), x, 0, 64<<20)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var got []byte
	for y := 0; y < end; {
		n := 1 + rnd.IntN(end-y)
		if y < from {
			n = min(n, from-y)
			if err := rows.Skip(n); err != nil {
				return nil, err
			}
		} else {
			part := bytes.Repeat([]byte{0xaa}, n*rows.Bytes())
			if err := rows.Next(part); err != nil {
				return nil, err
			}
			got = append(got, part...)
		}
		y += n
	}
	return got, nil
}

// damaged returns stored bytes as writers and disks leave them: right, with other bytes behind them, cut, and
// with a wrong bit.
func damaged(src []byte, rnd *rand.Rand) map[string][]byte {
	flipped := bytes.Clone(src)
	flipped[rnd.IntN(len(src))] ^= 1 << rnd.IntN(8)
	return map[string][]byte{
		"right": src, "with zeros behind": append(bytes.Clone(src), make([]byte, 9)...),
		"with one byte behind": append(bytes.Clone(src), 0x28), "twice": append(bytes.Clone(src), src...),
		"cut": src[:rnd.IntN(len(src))], "without the last byte": src[:len(src)-1], "flipped": flipped,
	}
}

// TestRowsAreThoseOfTheWhole: decoding in pieces gives the samples of decoding as a whole, and refuses what that
// refuses, for chunks of every codec and layout, right and damaged.
func TestRowsAreThoseOfTheWhole(t *testing.T) {
	if race.Enabled {
		t.Skip("one goroutine decodes, for two thirds of the package's time under the race detector")
	}
	rnd := rand.New(rand.NewPCG(21, 22))
	refused, layouts, d := 0, streamLayouts(), chunk.NewDecoder(nil)
	if !soak.All() {
		rnd.Shuffle(len(layouts), func(i, k int) { layouts[i], layouts[k] = layouts[k], layouts[i] })
		part := 2
		if testing.Short() { // other build tags choose other decoders below
			part = 6
		}
		layouts = layouts[:len(layouts)/part]
	}
	for _, x := range layouts {
		n := x.DecodedBytes(0)
		if x.Bits {
			n = x.ChunkH * ((x.ChunkW + 7) / 8)
		}
		for _, more := range []int{0, 50, -1} {
			all := encoded(t, contentOf(n+more, rnd))
			for _, codec := range slices.Sorted(maps.Keys(all)) {
				sources := damaged(all[codec], rnd)
				for _, how := range slices.Sorted(maps.Keys(sources)) {
					y, src := *x, sources[how]
					y.Codec, y.Ranges = codec, []chunk.Range{{Off: 8, Len: int64(len(src))}}
					if len(src) == 0 {
						continue // a sparse chunk
					}
					what := fmt.Sprintf("%v, %s, %d bytes more, %+v", codec, how, more, y)
					if compareRows(t, d, &y, src, rnd, what) {
						refused++
					}
				}
			}
		}
	}
	if refused < 20*len(layouts) {
		t.Errorf("only %d chunks of %d layouts were refused", refused, len(layouts))
	}
}

// compareRows holds decoding in pieces to decoding as a whole. It reports whether both refused the chunk.
func compareRows(t *testing.T, d *chunk.Decoder, x *chunk.Index, src []byte, rnd *rand.Rand,
	what string) (refused bool) {
	t.Helper()
	want := make([]byte, x.DecodedBytes(0))
	wantErr := d.Decode(want, src, x, 0)
	got, err := inRows(d, x, src, rnd, 0, x.ChunkH)
	if wantErr != nil && x.Codec == chunk.Zstd && fault.KindOf(err) == fault.Limit {
		return true // a frame whose claim is too large either way, for its window or for the chunk
	}
	if fault.KindOf(err) != fault.KindOf(wantErr) || (err == nil) != (wantErr == nil) {
		t.Fatalf("%s: in pieces %v, as a whole %v", what, err, wantErr)
	}
	if wantErr != nil {
		if err.Error()[:8] != "chunk 0 " && err.Error()[:8] != "chunk 0:" {
			t.Fatalf("%s: %v does not name the chunk", what, err)
		}
		return true
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%s: other samples", what)
	}
	from := rnd.IntN(x.ChunkH)
	end := from + 1 + rnd.IntN(x.ChunkH-from)
	row := len(want) / x.ChunkH
	if got, err := inRows(d, x, src, rnd, from, end); err != nil || !bytes.Equal(got, want[from*row:end*row]) {
		t.Fatalf("%s: other samples in rows %d to %d: %v", what, from, end, err)
	}
	return false
}

// contentOf returns n bytes that compress a little.
func contentOf(n int, rnd *rand.Rand) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.IntN(9) * rnd.IntN(40))
		if i > 30 && rnd.IntN(3) == 0 {
			b[i] = b[i-30]
		}
	}
	return b
}

// streamLayouts returns chunks in every form that decoding in pieces knows.
func streamLayouts() []*chunk.Index {
	var all []*chunk.Index
	one := func(bands, h, w int, d chunk.DType) *chunk.Index {
		return &chunk.Index{Bands: bands, Height: h, Width: w, ChunkB: bands, ChunkH: h, ChunkW: w, DType: d,
			Predictor: chunk.NoPredictor, Inner: chunk.YXB}
	}
	for _, bands := range []int{1, 3} {
		for _, d := range []chunk.DType{chunk.Uint8, chunk.Int16, chunk.Float16, chunk.Float32,
			chunk.Uint64, chunk.Complex64} {
			for p := chunk.NoPredictor; p <= chunk.FloatingPoint; p++ {
				for _, bigEndian := range []bool{false, true} {
					x := one(bands, 11, 37, d)
					x.Predictor, x.BigEndian = p, bigEndian
					if p == chunk.FloatingPoint && (d == chunk.Uint8 || d == chunk.Complex64) {
						continue
					}
					all = append(all, x)
				}
			}
		}
	}
	planes := one(2, 23, 9, chunk.Int16)
	planes.ChunkB, planes.Inner, planes.Predictor = 1, chunk.BYX, chunk.Horizontal
	bits := one(1, 50, 77, chunk.Uint8)
	bits.Bits = true
	wide := one(1, 2, 100_000, chunk.Uint16) // rows over the size of a block of zstd
	long := one(1, 20_000, 1, chunk.Uint8)
	return append(all, planes, bits, wide, long)
}

func TestLZWStreamAgainstSlowEncoder(t *testing.T) {
	for name, want := range payloads() {
		s, err := new(lzwDecoder).Stream(bySource(slowLZW(want)), 0)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		for at := 0; at < len(got); {
			n := min(1+at%700, len(got)-at)
			if err := s.Fill(got[at : at+n]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			at += n
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes", name)
		}
		if err := s.Fill(make([]byte, 1)); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: a byte behind the end: %v", name, err)
		}
	}
}

// A stream whose source fails has an error, and no other content.
func TestStreamsOfAFailingSource(t *testing.T) {
	want := payloads()["random"]
	for codec, src := range encoded(t, want) {
		cut := io.MultiReader(bytes.NewReader(src[:len(src)/2]), iotest.ErrReader(errors.New("gone")))
		s, err := chunk.Registered()[codec]().(chunk.StreamDecompressor).Stream(bufio.NewReader(cut), 64<<20)
		if err == nil {
			err = s.Fill(make([]byte, len(want)))
		}
		if err == nil {
			t.Errorf("%v: no error", codec)
		}
	}
}

// FuzzStreams: whatever the bytes, a codec that decodes in parts gives the bytes that it gives as a whole, or
// refuses them as it does.
func FuzzStreams(f *testing.F) {
	for name, want := range payloads() {
		for _, src := range encoded(f, want[:min(len(want), 3000)]) {
			f.Add(src, uint16(min(len(want), 3000)), uint16(len(name)))
		}
	}
	f.Add([]byte{0xfe, 0xaa, 0x02, 0x80, 0x00, 0x2a}, uint16(6), uint16(1))
	f.Add([]byte("\x78\x9c\x4b\x4c\x4a\x06\x00\x02\x4d\x01\x27"), uint16(3), uint16(2))
	f.Fuzz(func(t *testing.T, src []byte, n, step uint16) {
		for c, open := range chunk.Registered() {
			if !c.Streams() {
				continue
			}
			d, want, got := open(), make([]byte, n), make([]byte, n)
			wantErr := all(d, want, src)
			err := fillIn(d.(chunk.StreamDecompressor), got, src, int(step)+1)
			if fault.KindOf(err) == fault.Limit && c == chunk.Zstd {
				continue // a window that a stream does not take
			}
			if c == chunk.Deflate && wantErr == nil && err != nil && cutBehind(src, want) {
				continue // the library for streams takes no code from the last bits of a stream that is cut
			}
			if (err == nil) != (wantErr == nil) || fault.KindOf(err) != fault.KindOf(wantErr) {
				t.Fatalf("%v: in parts %v, as a whole %v", c, err, wantErr)
			}
			if err == nil && !bytes.Equal(got, want) {
				t.Fatalf("%v: other bytes", c)
			}
		}
	})
}

// cutBehind reports whether the standard library reads want from a zlib stream that is cut somewhere behind it, maybe
// in the code that follows.
func cutBehind(src, want []byte) bool {
	got, err := io.ReadAll(flate.NewReader(bytes.NewReader(src[2:])))
	return errors.Is(err, io.ErrUnexpectedEOF) && bytes.HasPrefix(got, want)
}

// fillIn fills dst in parts of step bytes.
func fillIn(d chunk.StreamDecompressor, dst, src []byte, step int) error {
	s, err := d.Stream(bufio.NewReader(bytes.NewReader(src)), 1<<20)
	if err != nil {
		return err
	}
	defer s.Close()
	for ; len(dst) > 0; dst = dst[min(step, len(dst)):] {
		if err := s.Fill(dst[:min(step, len(dst))]); err != nil {
			return err
		}
	}
	return s.End()
}

func BenchmarkLZWStream(b *testing.B) {
	want := payloads()["steps"]
	src, dst := slowLZW(want), make([]byte, len(want))
	b.SetBytes(int64(len(dst)))
	for range b.N {
		s, err := new(lzwDecoder).Stream(bufio.NewReader(bytes.NewReader(src)), 0)
		if err == nil {
			err = s.Fill(dst)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
