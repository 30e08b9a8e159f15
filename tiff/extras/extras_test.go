package extras_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/extras"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// open opens the directories of a file.
func open(t *testing.T, b []byte) *ifd.File {
	t.Helper()
	f, err := ifd.Open(t.Context(), &corpus.Mem{B: b}, tiff.Limits{}.IFD())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCodingsAreNoMetadata: what a codec has to know about tiles, a conversion does not report as left out.
func TestCodingsAreNoMetadata(t *testing.T) {
	dir := filepath.Join(corpus.Testdata(t), "codecs")
	for _, row := range corpus.Rows[struct{ Path string }](t, dir) {
		b := testfile.Read(t, filepath.Join(dir, row.Path))
		if e, err := extras.Read(t.Context(), open(t, b)); err != nil || len(e.Unknown) > 0 {
			t.Errorf("%s: unknown %q, error %v", row.Path, e.Unknown, err)
		}
	}
}

// written returns a file of one pixel with a text of metadata.
func written(t *testing.T, metadata string) []byte {
	t.Helper()
	var b bytes.Buffer
	o := tog.Options{Shape: [3]int{1, 1, 1}, DType: chunk.Uint8, Tile: 16, GDALMetadata: metadata}
	if err := tog.Write(&b, []byte{1}, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestItems: items are kept as they are written, but for how samples are stored; descriptions are read as they were.
func TestItems(t *testing.T) {
	const kept = `<Item name="a&amp;b">x < y</Item>`
	names := []string{"B1", "", `a "<&>`}
	for text, want := range map[string][]string{
		extras.GDALMetadata(nil): nil,
		extras.GDALMetadata([]string{"<Item name=\"a\">é\x01</Item>"}): {"<Item name=\"a\">é\x01</Item>"},
		extras.GDALMetadata(extras.Descriptions(names)):                extras.Descriptions(names),
		"<GDALMetadata>" + kept:                                        nil, // not XML
	} {
		got, err := extras.Read(t.Context(), open(t, written(t, text)))
		if err != nil || !slices.Equal(got.Items, want) || (len(got.Unknown) > 0) != (text == "<GDALMetadata>"+kept) {
			t.Errorf("%s: %q, unknown %q, want %q: %v", text, got.Items, got.Unknown, want, err)
		}
	}
}

// TestTaken: metadata of many parts take memory by their length.
func TestTaken(t *testing.T) {
	for _, text := range taken.XML("<GDALMetadata>") {
		b := written(t, text)
		taken.Check(t, 3*len(b), taken.FactorXML, func() { _, _ = extras.Read(t.Context(), open(t, b)) })
	}
}
