package spacetime

import (
	"math"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/crs"
)

// TestScaled: times beyond the range of microseconds are its first or last one.
func TestScaled(t *testing.T) {
	for n, want := range map[int64]int64{math.MinInt64: math.MinInt64, -1: -day, 0: 0, 3: 3 * day,
		math.MaxInt64 / day: math.MaxInt64 / day * day, math.MaxInt64/day + 1: math.MaxInt64} {
		if got := scaled(n, day); got != want {
			t.Errorf("%d days are %d, want %d", n, got, want)
		}
	}
}

// TestWithoutGeometries promises that a program without package geometries is told what to import.
func TestWithoutGeometries(t *testing.T) {
	box, err := crs.NewBox([4]float64{0, 0, 1, 1}, 4326)
	if err != nil {
		t.Fatal(err)
	}
	filter := Filter{Box: &box, Geometry: "g"}
	binary := tables.Column{Name: "g", Type: tables.Type{Kind: tables.Binary}}
	table := tables.New(1, []tables.Column{binary}, nil)
	_, err = filter.Match(t.Context(), table)
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "/format/tables/geometries,") {
		t.Error(err)
	}
}
