package tiledb

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// TestTimesBeforeEpoch: an array by libtiledb 1.6.3, which takes datetimes for unsigned numbers when it bounds them:
// boxes that begin after 1970 and end before it, nodes above them that do not hold them, and a domain that
// does not hold all cells. Cells are v = 10*day + site.
func TestTimesBeforeEpoch(t *testing.T) {
	ctx := context.Background()
	var files Files
	defer files.Close()
	a, err := Open(ctx, &files, filepath.Join("testdata", "before_1970"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	cells := [][2]int64{{-4000, 0}, {-3000, 1}, {-999, 9}, {-20, 2}, {-7, 4}, {-1, 3}, {0, 4}, {7, 5}, {25, 5},
		{900, 1}, {15000, 2}, {19000, 3}}
	day := a.Schema.DimType
	for _, days := range [][2]int64{{-4000, 20000}, {-4000, -1}, {-30, 30}, {0, 20000}, {-7, -7}, {-1, 0},
		{1000, 14000}, {16000, 20000}} {
		box := a.Schema.Domain()
		box[0] = Interval{day.CoordOf(days[0]), day.CoordOf(days[1])}
		got, err := a.NewReader().Sparse(ctx, []int{0}, box)
		if err != nil {
			t.Fatalf("%v: %v", days, err)
		}
		var coords, values []byte
		for _, c := range cells {
			if days[0] <= c[0] && c[0] <= days[1] {
				coords = day.store(day.store(coords, day.CoordOf(c[0])), day.CoordOf(c[1]))
				values = Int32.store(values, Int32.CoordOf(10*c[0]+c[1]))
			}
		}
		if string(got.Coords) != string(coords) || string(got.Values[0].Data) != string(values) {
			t.Errorf("%v: %d cells, coordinates %x, want %x", days, got.N, got.Coords, coords)
		}
	}
	if _, err := a.Verify(ctx); err != nil {
		t.Error(err)
	}
}

// TestBoundsOfNumbersAscend: what is read from datetimes is corrupt of numbers, and of a dense fragment.
func TestBoundsOfNumbersAscend(t *testing.T) {
	for _, typ := range []Datatype{Int64, DatetimeDay} {
		c := &byteCursor{b: typ.store(typ.store(nil, typ.CoordOf(5)), typ.CoordOf(-5)), base: fault.NoOffset}
		if c.box([]Datatype{typ}, "box"); fault.KindOf(c.bad) != fault.Corrupt {
			t.Errorf("%v: box from 5 to -5: %v", typ, c.bad)
		}
		c.off, c.bad = 0, nil
		if c.bounds([]Datatype{typ}, "box"); (c.bad == nil) != (typ == DatetimeDay) {
			t.Errorf("%v: bounds from 5 to -5: %v", typ, c.bad)
		}
		c = &byteCursor{b: typ.store(typ.store(nil, typ.CoordOf(-4)), typ.CoordOf(-5)), base: fault.NoOffset}
		if c.bounds([]Datatype{typ}, "box"); c.bad == nil {
			t.Errorf("%v: bounds from -4 to -5", typ)
		}
	}
}
