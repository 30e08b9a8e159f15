package openzl

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// encodeDelta appends a frame of differences, compressed with zstd.
func encodeDelta(dst, samples []byte, width, level int) ([]byte, error) {
	e, err := NewEncoder("delta>zstd", EncodeOptions{Level: level})
	if err != nil {
		return nil, err
	}
	return e.Encode(dst, samples, width, 1, len(samples)/max(width, 1))
}

// TestEncodeRoundTrip: frames of delta>zstd and Store are read back, also when appended to other
// bytes.
func TestEncodeRoundTrip(t *testing.T) {
	d := NewDecoder(Options{})
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "width")
		n := rapid.IntRange(0, 300).Draw(t, "count")
		samples := rapid.SliceOfN(rapid.Byte(), n*width, n*width).Draw(t, "samples")
		before := rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "before")
		level := rapid.IntRange(1, 22).Draw(t, "level")
		for _, encode := range []func() ([]byte, error){
			func() ([]byte, error) { return encodeDelta(slices.Clone(before), samples, width, level) },
			func() ([]byte, error) { return Store(slices.Clone(before), samples, width) },
		} {
			got, err := encode()
			if err != nil || !bytes.HasPrefix(got, before) {
				t.Fatalf("error %v, % x", err, got)
			}
			outs, err := d.Decode(got[len(before):])
			if err != nil {
				t.Fatal(err)
			}
			o := outs[0]
			if len(outs) != 1 || o.Type != Numeric || o.Width != width || o.Count != n ||
				!bytes.Equal(o.Data, samples) {
				t.Fatalf("read back %d outputs, %v of %d times %d bytes", len(outs), o.Type, o.Count, o.Width)
			}
			dst := make([]byte, len(samples))
			if err := d.Decompress(dst, got[len(before):], width); err != nil || !bytes.Equal(dst, samples) {
				t.Fatalf("Decompress: %v", err)
			}
		}
	})
}

func TestEncodeRefuses(t *testing.T) {
	for _, c := range []struct{ n, width int }{{6, 3}, {5, 2}, {4, 0}, {16, 16}, {4, -1}} {
		if _, err := encodeDelta(nil, make([]byte, c.n), c.width, 3); !errors.Is(err, fault.Unsupported) {
			t.Errorf("%d bytes of width %d: %v", c.n, c.width, err)
		}
		if _, err := Store(nil, make([]byte, c.n), c.width); !errors.Is(err, fault.Unsupported) {
			t.Errorf("Store: %d bytes of width %d: %v", c.n, c.width, err)
		}
	}
}

// TestOriginalReads: the original library reads the frames that this package writes.
func TestOriginalReads(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with openzl")
	}
	dir := t.TempDir()
	args := []string{"-c", `
import sys, numpy as np, openzl.ext as zl
for p in sys.argv[1:]:
    out = zl.DCtx().decompress(open(p + ".zl", "rb").read())
    assert len(out) == 1, len(out)
    got = out[0].content.as_nparray()
    assert out[0].type == zl.Type.Numeric, out[0].type
    assert got.dtype.itemsize == int(p.rsplit("-", 1)[1]), got.dtype
    assert got.tobytes() == open(p + ".raw", "rb").read(), p
`}
	for _, width := range []int{1, 2, 4, 8} {
		for _, n := range []int{0, 1, 2, 255, 256, 257, 70000} {
			samples := make([]byte, n*width)
			for i := range samples {
				samples[i] = byte(i * i >> 7)
			}
			for _, kind := range []string{"delta", "store"} {
				frame, err := Store(nil, samples, width)
				if kind == "delta" {
					frame, err = encodeDelta(nil, samples, width, 13)
				}
				if err != nil {
					t.Fatal(err)
				}
				p := filepath.Join(dir, kind+strconv.Itoa(n)+"-"+strconv.Itoa(width))
				err = errors.Join(os.WriteFile(p+".zl", frame, 0o600), os.WriteFile(p+".raw", samples, 0o600))
				if err != nil {
					t.Fatal(err)
				}
				args = append(args, p)
			}
		}
	}
	if out, err := exec.Command(python, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
