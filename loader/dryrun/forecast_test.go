package dryrun

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/shuffle"
)

// workOf returns work whose figures a function of their numbers gives.
func workOf(of func(i int) int64) (w Work) {
	v := reflect.ValueOf(&w).Elem()
	for i := range v.NumField() {
		v.Field(i).SetInt(of(i))
	}
	return w
}

// TestArithmeticOfWork: sums, maxima and multiples take every field of Work, each with its own.
func TestArithmeticOfWork(t *testing.T) {
	one := workOf(func(i int) int64 { return int64(100 * (i + 1)) })
	// Of every second field the other has more.
	other := workOf(func(i int) int64 { return int64(100*(i+1)) + int64(7-14*(i%2)) })
	sum, most := one, one
	sum.Add(other)
	most.Max(other)
	odd := workOf(func(i int) int64 { return int64(2*i + 1) })
	for name, c := range map[string]struct {
		got  Work
		want func(i int) int64
	}{
		"sum":   {sum, func(i int) int64 { return int64(200*(i+1) + 7 - 14*(i%2)) }},
		"most":  {most, func(i int) int64 { return int64(100*(i+1) + 7 - 7*(i%2)) }},
		"half":  {odd.Times(0.5), func(i int) int64 { return int64(i + 1) }}, // 0.5 is rounded up
		"0.49":  {odd.Times(0.49), func(i int) int64 { return int64(i) }},
		"other": {other, func(i int) int64 { return int64(100*(i+1) + 7 - 14*(i%2)) }},
		"odd":   {odd, func(i int) int64 { return int64(2*i + 1) }},
	} {
		if want := workOf(c.want); c.got != want {
			t.Errorf("%s: %+v, want %+v", name, c.got, want)
		}
	}
}

// TestWorkCountsReads: of a read that takes several requests, all of them; of each chunk, its decoded bytes.
func TestWorkCountsReads(t *testing.T) {
	w := Work{Requests: 1, Bytes: 10, Chunks: 1, Decoded: 5}
	w.Count(&pixels.Reads{
		Runs:   []pixels.ReadRange{{Len: 200, Requests: 1}, {Len: 3000, Requests: 3}},
		Chunks: []pixels.ReadChunk{{Decoded: 40_000, Held: 1}, {Decoded: 0}, {Decoded: 500_000}},
	})
	if want := (Work{Requests: 5, Bytes: 3210, Chunks: 4, Decoded: 540_005}); w != want {
		t.Errorf("%+v, want %+v", w, want)
	}
}

// TestTotalOfMemory: the figures of a forecast, with a factor of ten for each.
func TestTotalOfMemory(t *testing.T) {
	m := Memory{Batch: 3, Batches: 5, Tiles: 1000, Worker: 70, Workers: 300, Catalog: 900_000}
	if got := m.Total(); got != 15+1000+21_000+900_000 {
		t.Errorf("%d", got)
	}
}

// TestExactForecast: a forecast is exact if it lacks no step, no sample is bad and all reads are known.
func TestExactForecast(t *testing.T) {
	for _, c := range []struct {
		f    Forecast
		want bool
	}{
		{Forecast{Steps: 7, Examined: 7}, true},
		{Forecast{Steps: 7, Examined: 6}, false},
		{Forecast{Steps: 7, Examined: 7, Loose: true}, false},
		{Forecast{Steps: 7, Examined: 7, Total: Work{Bad: 1}}, false},
		{Forecast{Steps: 7, Examined: 7, Total: Work{Rows: 9}, Evicted: 3}, true},
	} {
		if c.f.Exact() != c.want {
			t.Errorf("%+v: exact is %v", c.f, !c.want)
		}
	}
}

// TestNotedErrors: in any order, the fault whose text sorts first is noted. A substitute stops at it, and an error that
// no policy covers stops all.
func TestNotedErrors(t *testing.T) {
	first := fault.At(fault.Corrupt, "a", 1, "first\nof two lines")
	last := fault.At(fault.Limit, "b", 2, "last")
	for _, order := range [][]error{{first, last}, {last, first}, {last, first, last}, {first}} {
		for _, attempt := range []int{0, 1, 2} {
			row := Row{Draw: shuffle.Draw{Attempt: attempt}}
			for _, err := range order {
				if stop, got := row.Note(err); stop != (attempt > 0) || got != nil {
					t.Errorf("attempt %d: stops %v with %v", attempt, stop, got)
				}
			}
			if row.Err != first || row.Error != fault.Line(first) {
				t.Errorf("%v: noted %v, as %q", order, row.Err, row.Error)
			}
		}
	}
	row, network := Row{}, fmt.Errorf("read: %w", errors.New("reset"))
	if stop, err := row.Note(network); !stop || err != network || row.Err != nil || row.Error != "" {
		t.Errorf("stops %v with %v, noted %v", stop, err, row.Err)
	}
}
