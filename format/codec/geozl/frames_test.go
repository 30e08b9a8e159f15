package geozl

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/cast"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// smooth returns h rows of w numbers of width bytes that change little, but for some.
func smooth(h, w, width int, seed byte) []byte {
	out := make([]byte, h*w*width)
	for i := range h * w {
		value := uint64(i%w/3 + i/w + int(seed))
		if i%97 == int(seed)%97 {
			value = ^value * 0x9e3779b97f4a7c15
		}
		cast.PutUint(out[i*width:], width, value)
	}
	return out
}

// TestFirstRowsOfRecodedFrames: the first rows of a frame are those that were encoded, whatever follows them.
func TestFirstRowsOfRecodedFrames(t *testing.T) {
	decoder := chunk.Registered()[chunk.OpenZL]()
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "width")
		h, w := rapid.IntRange(1, 90).Draw(t, "rows"), rapid.IntRange(1, 300).Draw(t, "row")
		samples := smooth(h, w, width, rapid.Byte().Draw(t, "seed"))
		frame, err := chunk.NewRecoder().Encode(nil, samples, width, h, w)
		if err != nil {
			t.Fatal(err)
		}
		need := rapid.IntRange(0, len(samples)).Draw(t, "need")
		got := make([]byte, len(samples), len(samples)+chunk.Spare)
		if err := decoder.Decompress(got, frame, &chunk.Tile{Need: need, Number: width}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got[:need], samples[:need]) {
			t.Fatalf("other samples of %d by %d numbers of %d bytes", h, w, width)
		}
	})
}

// TestFramesOfFiles: what the graph "fast" writes is read back, and no bit of it can change without an error.
func TestFramesOfFiles(t *testing.T) {
	const h, w, width = 13, 40, 2
	samples := smooth(h, w, width, 5)
	encoder, err := openzl.NewEncoder("fast", openzl.EncodeOptions{Geozl: openzl.Geozl18})
	if err != nil {
		t.Fatal(err)
	}
	frame, err := encoder.Encode(nil, samples, width, h, w)
	if err != nil {
		t.Fatal(err)
	}
	decoder := &frames{d: openzl.NewDecoder(openzl.Options{Custom: Codecs()})}
	if row, ok := decoder.Open(frame, h*w, width); !ok || row != w {
		t.Fatal("its residuals cannot be read row by row")
	}
	whole := &chunk.Tile{Need: len(samples), Number: width}
	got := make([]byte, len(samples), len(samples)+chunk.Spare)
	if err := decoder.Decompress(got, frame, whole); err != nil || !bytes.Equal(got, samples) {
		t.Fatalf("other samples: %v", err)
	}
	for i := range frame {
		for bit := range 8 {
			frame[i] ^= 1 << bit
			err := decoder.Decompress(got, frame, whole)
			frame[i] ^= 1 << bit
			if fault.KindOf(err) == 0 && !bytes.Equal(got, samples) {
				t.Fatalf("bit %d of byte %d: other samples, and no fault: %v", bit, i, err)
			}
		}
	}
}

// FuzzRecoded: frames of a Recoder that are damaged decode to what the decoder of all frames makes of them, and only
// frames that it refuses are refused.
func FuzzRecoded(f *testing.F) {
	for i, width := range []int{1, 2, 4, 8} {
		for _, bare := range []bool{true, false} {
			encoder, err := openzl.NewEncoder("fast", openzl.EncodeOptions{Geozl: openzl.Geozl18, Bare: bare})
			if err != nil {
				f.Fatal(err)
			}
			frame, err := encoder.Encode(nil, smooth(20, 40+i, width, 3), width, 20, 40+i)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(frame, uint16(20*(40+i)), byte(width), uint16(300))
		}
	}
	decoder := chunk.Registered()[chunk.OpenZL]()
	all := openzl.NewDecoder(openzl.Options{Custom: Codecs()})
	f.Fuzz(func(t *testing.T, frame []byte, count uint16, width byte, first uint16) {
		if !cast.IsWidth(int(width)) {
			return
		}
		size := int(count) * int(width)
		want, got := make([]byte, size), make([]byte, size, size+chunk.Spare)
		wanted := all.Decompress(want, frame, int(width))
		for _, need := range []int{size, min(int(first), size)} {
			err := decoder.Decompress(got, frame, &chunk.Tile{Need: need, Number: int(width)})
			refused, whole := err != nil, need == size
			if refused && (fault.KindOf(err) == 0 || wanted == nil) || whole && !refused && wanted != nil {
				t.Fatalf("%d of %d bytes: %v, want %v", need, size, err, wanted)
			}
			if wanted == nil && !bytes.Equal(got[:need], want[:need]) {
				t.Fatalf("the first %d of %d bytes differ", need, size)
			}
		}
	})
}
