package main

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

// What a file's mask takes out is transparent in its picture, and nothing else of a file without nodata.
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
