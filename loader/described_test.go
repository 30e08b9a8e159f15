package loader_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tiff"
)

// writeDescribed writes a raster whose band k is full of values[k], and is described by names[k].
func writeDescribed(t *testing.T, path string, names []string, values ...byte) {
	t.Helper()
	const n = 16
	var pixels []byte
	for _, v := range values {
		pixels = append(pixels, bytes.Repeat([]byte{v}, n*n)...)
	}
	var b bytes.Buffer
	o := tiff.TOGOptions{Shape: [3]int{len(values), n, n}, DType: chunk.Uint8, Tile: n, BandNames: names}
	if err := tiff.WriteTOG(&b, pixels, o); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestStatsMatchDescriptions promises that the mean of a band is of that band alone where files have their bands in
// other orders: by the names that a field asks for, and refused where it asks for none. Numbers ask for positions.
func TestStatsMatchDescriptions(t *testing.T) {
	dir := t.TempDir()
	writeDescribed(t, filepath.Join(dir, "a.tif"), []string{"B04", "B08", "B11"}, 10, 100, 3)
	writeDescribed(t, filepath.Join(dir, "b.tif"), []string{"B08", "B04", "B12"}, 120, 20, 7)
	writeDescribed(t, filepath.Join(dir, "c.tif"), nil, 30, 110, 5) // without descriptions, positions count
	pairs := filepath.Join(dir, "catalog.parquet")
	var b bytes.Buffer
	if _, err := build.Write(t.Context(), &b, []string{dir}, build.Options{Base: dir}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pairs, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{filepath.Join(dir, "*.tif"), pairs} {
		for _, c := range []struct {
			field loader.Field
			means []float64
		}{
			{loader.Field{Name: "image", BandNames: []string{"B08", "B04"}}, []float64{20, 110}},
			{loader.Field{Name: "image", Bands: []int{0, 1, 2}},
				[]float64{(10 + 120 + 30) / 3.0, (100 + 20 + 110) / 3.0}},
		} {
			s := loader.Spec{Source: source, BatchSize: 1, Fields: []loader.Field{c.field}}
			if source == pairs {
				s.Fields[0].Column = "uri"
			}
			if c.field.BandNames != nil {
				s.BadSamples = "skip" // c.tif has no band of these names
			}
			r, err := survey.Stats(t.Context(), s, loader.Options{}, nil)
			if err != nil {
				t.Fatal(source, err)
			}
			for band, want := range c.means {
				if got := r.Fields["image"].Bands[band].Mean; got == nil || *got != want {
					t.Errorf("%s: mean of band %d is %v, want %v", source, band, got, want)
				}
			}
		}
		s := loader.Spec{Source: source, BatchSize: 1, Fields: []loader.Field{{Name: "image"}}}
		if source == pairs {
			s.Fields[0].Column = "uri"
		}
		_, err := survey.Stats(t.Context(), s, loader.Options{}, nil)
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "b.tif") ||
			!strings.Contains(err.Error(), `band 0 is "B08"`) || !strings.Contains(err.Error(), `a.tif it is "B04"`) {
			t.Errorf("%s: %v, want the bands and files that disagree", source, err)
		}
	}
}
