package loader

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
)

// statsOf runs the pass over a table in memory.
func statsOf(t *testing.T, tab *fakeTable, workers int, policy string) ([]byte, map[string][]float64, int64) {
	t.Helper()
	sp := Spec{Source: "memory", Fields: chipFields, BatchSize: 1, BadSamples: policy}.WithDefaults()
	part, err := survey.MeasureTable(context.Background(), sp, Options{
		Workers: workers, Opener: tab,
	}.WithDefaults(), tab.table(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := part.Report(sp.Fields)
	js, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]float64{}
	for name, f := range r.Fields {
		for _, b := range f.Bands {
			lo, err1 := b.Min.Float64()
			hi, err2 := b.Max.Float64()
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			got[name] = append(got[name], float64(b.Count), *b.Mean, *b.Std, lo, hi)
		}
	}
	return js, got, r.Skipped
}

// slowStats measures one band of a field in two plain loops.
func slowStats(tab *fakeTable, field int64, band int, leaveOut int64) []float64 {
	var v []float64
	for row := range tab.rows {
		a := tab.assets[[2]int64{field, row}]
		if row == leaveOut {
			continue
		}
		for i, s := range a.pix[band*a.h*a.w : (band+1)*a.h*a.w] {
			if a.valid(band, i/a.w, i%a.w) {
				v = append(v, float64(s))
			}
		}
	}
	mean, squares := 0.0, 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		squares += (x - mean) * (x - mean)
	}
	return []float64{float64(len(v)), mean, math.Sqrt(squares / float64(len(v))), slices.Min(v), slices.Max(v)}
}

func checkStats(t *testing.T, tab *fakeTable, got map[string][]float64, leaveOut int64) {
	t.Helper()
	for field, name := range []string{"image", "mask"} {
		for band := range len(got[name]) / 5 {
			want := slowStats(tab, int64(field), band, leaveOut)
			for i, w := range want {
				if g := got[name][5*band+i]; math.Abs(g-w) > 1e-9*math.Abs(w) {
					t.Errorf("%s band %d: figure %d is %v, want %v", name, band, i, g, w)
				}
			}
		}
	}
}

func TestStatsAgainstPlainLoops(t *testing.T) {
	tab := chips(20, 9)
	one, got, _ := statsOf(t, tab, 1, spec.BadError)
	checkStats(t, tab, got, -1)
	for _, workers := range []int{2, 7} {
		if js, _, _ := statsOf(t, tab, workers, spec.BadError); string(js) != string(one) {
			t.Errorf("%d workers give another report", workers)
		}
	}
}

// TestStatsOfBadSamples: a sample that fails after some of its chunks leaves no trace.
func TestStatsOfBadSamples(t *testing.T) {
	tab := chips(21, 6)
	last := &tab.assets[[2]int64{0, 4}].index.Ranges[len(tab.assets[[2]int64{0, 4}].index.Ranges)-1]
	last.Len-- // a raw chunk that is short
	sp := Spec{Source: "memory", Fields: chipFields, BatchSize: 1}.WithDefaults()
	_, err := survey.MeasureTable(context.Background(), sp, Options{Opener: tab}.WithDefaults(), tab.table(), nil, nil)
	if fault.KindOf(err) != fault.Corrupt {
		t.Fatalf("error %v", err)
	}
	_, got, skipped := statsOf(t, tab, 2, spec.BadSkip)
	if skipped != 1 {
		t.Errorf("%d samples skipped", skipped)
	}
	checkStats(t, tab, got, 4)
}

// TestStatsFirstFault promises the error of the first bad sample, whichever worker is faster.
func TestStatsFirstFault(t *testing.T) {
	tab := chips(22, 24)
	for row := int64(5); row < tab.rows; row++ {
		ranges := tab.assets[[2]int64{0, row}].index.Ranges
		ranges[0].Len-- // a raw chunk that is short
	}
	sp := Spec{Source: "memory", Fields: chipFields, BatchSize: 1}.WithDefaults()
	for range 20 {
		o := Options{Workers: 8, Opener: tab}.WithDefaults()
		_, err := survey.MeasureTable(context.Background(), sp, o, tab.table(), nil, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "sample 5: ") {
			t.Fatalf("error %v, want that of sample 5", err)
		}
	}
}
