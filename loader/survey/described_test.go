package survey_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
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
	o := tog.Options{Shape: [3]int{len(values), n, n}, DType: chunk.Uint8, Tile: n, BandNames: names}
	if err := tog.Write(&b, pixels, o); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, path, b.Bytes())
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
	testfile.Write(t, pairs, b.Bytes())
	for _, source := range []string{filepath.Join(dir, "*.tif"), pairs} {
		for _, c := range []struct {
			field loader.Field
			means []float64
		}{
			{loader.Field{Name: "image", BandNames: []string{"B08", "B04", "B08"}}, []float64{110, 15, 110}},
			{loader.Field{Name: "image", Bands: []int{1, 0}},
				[]float64{(100 + 20 + 110) / 3.0, (10 + 120 + 30) / 3.0}},
		} {
			s := loader.Spec{Source: source, BatchSize: 1, Fields: []loader.Field{c.field}}
			if source == pairs {
				s.Fields[0].Column = "uri"
			}
			if c.field.BandNames != nil {
				s.BadSamples = "skip" // c.tif has no band of these names, so that a loader skips it, too
			}
			r, err := survey.Stats(t.Context(), s, loader.Options{}, nil)
			if err != nil {
				t.Fatal(source, err)
			}
			report := r.Fields["image"]
			var means []float64
			for _, band := range report.Bands {
				means = append(means, *band.Mean)
			}
			if !slices.Equal(means, c.means) {
				t.Errorf("%s: means are %v, want %v, of the bands that were asked for", source, means, c.means)
			}
			// Normalisation finds the same bands, and no others.
			for _, bands := range [][]int{nil, {0}, {2}} {
				n, err := spec.NormalizeByStats(&report, stats.MinMax, bands, nil)
				if known := c.field.Bands != nil && slices.Equal(bands, []int{0}); (err == nil) != known ||
					known && n.Offset[0] != -10/110. {
					t.Errorf("%s: bands %d by statistics of %+v: %+v, %v", source, bands, c.field, n, err)
				}
			}
			if c.field.BandNames != nil {
				n, err := spec.NormalizeByStats(&report, stats.MinMax, nil, []string{"B04", "B08"})
				if err != nil || !slices.Equal(n.Offset, []float64{-1, -5}) {
					t.Errorf("%s: %+v, %v", source, n, err)
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
