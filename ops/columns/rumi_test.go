package columns

import (
	"math"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	loaded "github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestRumiStatistics promises that the statistics of a rumi file are those of all of its valid pixels, sorted, of every
// dtype and number of bands and steps of time, and that other rasters have none.
func TestRumiStatistics(t *testing.T) {
	c := &Compute{}
	c.names = map[string]bool{"rumi": true}
	measured := 0
	for _, f := range corpus.Raster(t) {
		if f.Kind != "rumi" && f.Kind != "rumi-new" && f.Kind != "tiff" {
			continue
		}
		file := &corpus.Mem{B: f.Bytes(t)}
		r, err := c.raster(t.Context(), &space{}, file, "", f.Path)
		if fault.KindOf(err) == fault.Unsupported { // dtypes without statistics, such as complex numbers
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if r == nil || !rumi.IsBlob(r.Index) {
			if r != nil && r.pooled != nil {
				t.Errorf("%s is no rumi file, and has %v", f.Path, r.pooled)
			}
			continue
		}
		want := sortedPixels(t, file)
		if want == nil {
			if r.pooled != nil {
				t.Errorf("%s: got %v, and no pixel is valid", f.Path, r.pooled)
			}
			continue
		}
		measured++
		for k, v := range r.pooled {
			// Sums of counts and sums of pixels are rounded elsewhere; percentiles of float32 are float32.
			if math.Abs(v-want[k]) > 1e-7*max(math.Abs(want[k]), want[3]) {
				t.Errorf("%s: statistic %d is %v, want %v", f.Path, k, v, want[k])
			}
		}
	}
	if measured < 20 {
		t.Errorf("only %d files were measured", measured)
	}
}

// sortedPixels computes the statistics of all valid pixels of a raster from their sorted values.
func sortedPixels(t *testing.T, file source.Reader) []float64 {
	t.Helper()
	a, err := readAll(t.Context(), opened(file), loaded.ReadOptions{Validity: true})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	var values []float64
	for i, v := range AppendValues(nil, a.Data, a.DType) {
		if (a.Valid == nil || a.Valid[i] != 0) && !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return nil
	}
	return slices.Delete(sorted(values, len(values), []float64{2, 98}), 4, 5)
}
