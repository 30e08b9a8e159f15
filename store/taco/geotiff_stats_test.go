package taco_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestGeotiffStatsArePooled: what tacoreader says of the statistics that writers of TACO 2 store
// (testdata/narrow/make.py), of files by their path below a sample. Its deviation is an estimate, ours is of the whole.
func TestGeotiffStatsArePooled(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "narrow")
	b := testfile.Read(t, filepath.Join(dir, "answers.json"))
	var answers struct{ Stats [][3]any }
	if err := json.Unmarshal(b, &answers); err != nil {
		t.Fatal(err)
	}
	d := mustOpen(t, filepath.Join(dir, "dates.tacozip"))
	checked := 0
	for _, a := range answers.Stats {
		p, err := d.Pool(t.Context(), a[1].(string)+"/img.tif", nil)
		if err != nil {
			t.Fatal(err)
		}
		got, off := map[string][]float64{"mean": p.Mean, "std": p.Std, "min": p.Min, "max": p.Max}[a[0].(string)], 1e-6
		if got == nil { // percentiles
			continue
		}
		if a[0] == "std" {
			off = 2e-3 // (w − 1) instead of w pixels of a row, of which the least has 576
		}
		for i, band := range []int{0, 2} {
			if want := a[2].([]any)[i].(float64); math.Abs(got[band]-want) > off*want {
				t.Errorf("%v of %v, band %d: %v, want %v", a[0], a[1], band, got[band], want)
			}
		}
		checked++
	}
	if checked != 8 {
		t.Errorf("%d answers", checked)
	}
	whole, err := d.Pool(t.Context(), "img.tif", nil)
	if err != nil || whole.Samples != 14 { // one of 15 has no statistics
		t.Errorf("%+v, %v", whole, err)
	}
	for _, name := range []string{"label.tif", "t0", "t9/img.tif", "img.tif/t0", "/img.tif", "0/img.tif",
		"roi_0/t0/img.tif"} {
		if _, err := d.Pool(t.Context(), name, nil); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, err := d.Report(t.Context(), "t1/img.tif", func(row int) bool { return row == 2 })
	if err != nil || r.Samples != 1 || r.Fields["t1/img.tif"].DType.String() != "uint16" ||
		*r.Fields["t1/img.tif"].Bands[1].Mean == 0 || r.Fields["t1/img.tif"].Bands[1].Count != 24*72 {
		t.Errorf("%+v, %v", r, err)
	}
}
