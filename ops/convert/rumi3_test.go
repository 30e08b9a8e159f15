package convert_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
)

// TestFromRumi3: a file of generation 3 is converted with all its pixels, and what the new file lacks is named.
// A file with several steps of time is refused.
func TestFromRumi3(t *testing.T) {
	files := &openers.Files{}
	defer files.Close()
	dir := filepath.Join(corpus.Testdata(t), "raster", "rumi-3")
	o := convert.Options{Format: convert.Rumi2, Tile: 16, Level: 3, Graph: "zstd", Workers: 2, MaxBytes: 1 << 20,
		Opener: files}
	var w bytes.Buffer
	left, err := convert.File(t.Context(), &w, []string{filepath.Join(dir, "unit-b-y-x-2.rumi")}, o)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"times", "band names"}; !slices.Equal(left, want) {
		t.Errorf("left out %q, want %q", left, want)
	}
	blob, err := rumi.IndexFile(t.Context(), &corpus.Mem{B: w.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	h, err := rumi.Parse(blob)
	if err != nil {
		t.Fatal(err)
	}
	pix, err := whole.Image(h.Index(), w.Bytes(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ Path, SHA256 string }
	rows := corpus.Rows[row](t, dir)
	k := slices.IndexFunc(rows, func(r row) bool { return r.Path == "unit-b-y-x-2.rumi" })
	if corpus.SHA256(pix) != rows[k].SHA256 {
		t.Error("other pixels")
	}
	_, err = convert.File(t.Context(), &w, []string{filepath.Join(dir, "unit-t-b-y-x-4.rumi")}, o)
	if !errors.Is(err, fault.Unsupported) {
		t.Errorf("three steps of time: %v", err)
	}
}
