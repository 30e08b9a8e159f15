package openzl

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// FuzzFrame: any bytes yield an error with a kind, or outputs whose sizes are consistent. Both are the
// same in a decoder that has decoded other frames, and Decompress agrees with Decode.
func FuzzFrame(f *testing.F) {
	race.SkipCovered(f)
	seeds, _ := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "openzl", "*.zl"))
	more, _ := filepath.Glob(filepath.Join("..", "..", "..", "..", "shared", "corpus", "raster", "*", "*.zl"))
	for _, p := range append(seeds, more...) {
		if b := read(f, p); len(b) < 8<<10 {
			f.Add(b, true)
			f.Add(b, false)
		}
	}
	used := map[bool]*Decoder{}
	for _, skip := range []bool{false, true} {
		used[skip] = NewDecoder(Options{MaxOutput: 1 << 20, SkipChecksums: skip})
	}
	f.Fuzz(func(t *testing.T, frame []byte, skip bool) {
		o := Options{MaxOutput: 1 << 20, SkipChecksums: skip}
		before := bytes.Clone(frame)
		outs, err := NewDecoder(o).Decode(frame)
		if !bytes.Equal(frame, before) {
			t.Fatal("the frame was written to")
		}
		if _, ierr := Inspect(frame); ierr != nil && fault.KindOf(ierr) == 0 {
			t.Fatalf("Inspect: error without a kind: %v", ierr)
		}
		again, err2 := used[skip].Decode(frame)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			if err2 == nil {
				t.Fatalf("a decoder in use accepts what a new one refuses: %v", err)
			}
			return
		}
		if err2 != nil || len(again) != len(outs) {
			t.Fatalf("a decoder in use: %d outputs, want %d: %v", len(again), len(outs), err2)
		}
		total := 0
		for i, a := range outs {
			b := again[i]
			if a.Type != b.Type || a.Width != b.Width || a.Count != b.Count || !bytes.Equal(a.Data, b.Data) ||
				!slices.Equal(a.Lens, b.Lens) {
				t.Fatalf("output %d differs in a decoder in use", i)
			}
			sum := a.Width * a.Count
			if a.Type == String {
				sum = 0
				for _, n := range a.Lens {
					sum += int(n)
				}
				if a.Width != 0 || len(a.Lens) != a.Count {
					t.Fatalf("output %d: width %d, %d lengths of %d strings", i, a.Width, len(a.Lens), a.Count)
				}
			}
			if sum != len(a.Data) {
				t.Fatalf("output %d: %d bytes, should be %d", i, len(a.Data), sum)
			}
			total += sum
		}
		if total > o.MaxOutput {
			t.Fatalf("%d bytes decoded", total)
		}
		if len(outs) == 1 && outs[0].Type == Numeric {
			dst := make([]byte, len(outs[0].Data))
			if err := used[skip].Decompress(dst, frame, outs[0].Width); err != nil || !bytes.Equal(dst, outs[0].Data) {
				t.Fatalf("Decompress differs: %v", err)
			}
		}
	})
}
