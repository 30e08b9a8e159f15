package cli

import (
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestViewOfAMaskedFile: exactly the pixels that a file's mask excludes are transparent in its
// picture, if the file has no nodata.
func TestViewOfAMaskedFile(t *testing.T) {
	out := filepath.Join(t.TempDir(), "o.png")
	for _, args := range [][]string{nil, {"--batch", "1"}} {
		path := testdata(t, "masks", "bytes.tif")
		if args != nil { // as a dataset
			dir := t.TempDir()
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "chip.tif"), b, 0o600); err != nil {
				t.Fatal(err)
			}
			path = dir
		}
		if r := chaski(t.Context(), append(append([]string{"view"}, args...), "-o", out, path)...); r.code != 0 {
			t.Fatalf("%+v", r)
		}
		f, err := os.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		shown := 0
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				if _, _, _, a := img.At(x, y).RGBA(); a != 0 {
					shown++
				}
			}
		}
		const valid = 2627 // of testdata/masks/manifest.jsonl
		if img.Bounds().Dx() != 70 || img.Bounds().Dy() != 50 || shown != valid {
			t.Errorf("%v: %d pixels shown of %v", args, shown, img.Bounds())
		}
	}
}

// TestVerifyOfMaskedFiles: verify decodes masks too, and names the place of a fault.
func TestVerifyOfMaskedFiles(t *testing.T) {
	r := chaski(t.Context(), "verify", testdata(t, "masks"))
	var got struct{ Files, Chunks, Faulty int64 }
	if r.code != 0 || json.Unmarshal([]byte(r.out), &got) != nil || got.Files != 5 || got.Faulty != 0 ||
		got.Chunks != 12+4+4+4+12+3+12+8+3*8+3*12 {
		t.Errorf("%+v", r)
	}
	b, err := os.ReadFile(testdata(t, "masks", "bytes.tif"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := ifd.Open(t.Context(), &corpus.Mem{B: b}, ifd.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	tags := f.Tags(t.Context(), &f.Dirs[1])
	v, at := tags.Value(ifd.TagStripByteCounts), tags.Value(ifd.TagStripOffsets)
	if tags.Err != nil {
		t.Fatal(tags.Err)
	}
	for i := range v.Uint(2) { // 128 does nothing in PackBits: the strip ends early
		b[at.Uint(2)+i] = 128
	}
	path := filepath.Join(t.TempDir(), "broken.tif")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r = chaski(t.Context(), "verify", path)
	if r.code != 1 || !errorLine.MatchString(r.err) ||
		!strings.Contains(r.err, fmt.Sprintf("mask chunk 2 packbits at %d", at.Uint(2))) {
		t.Errorf("%+v", r)
	}
	if r := chaski(t.Context(), "cat", path); r.code != 0 {
		t.Errorf("the samples as stored: %+v", r)
	}
}
