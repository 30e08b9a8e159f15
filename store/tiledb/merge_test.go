package tiledb

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// several makes a dense array of three fragments, that lie over each other, of some times.
func several(t *testing.T, path string, times [3]uint64) *Array {
	t.Helper()
	ctx := context.Background()
	at := Int32.CoordOf
	s := &Schema{Dense: true, Capacity: 4, DimType: Int32, Coords: DefaultFilters(), Offsets: DefaultFilters(),
		Dims: []Dim{{Name: "y", Domain: Interval{at(0), at(19)}, Extent: 4},
			{Name: "x", Domain: Interval{at(0), at(9)}, Extent: 5}},
		Attrs: []Attr{{Name: "a", Type: Uint8, Values: 1, Pipeline: DefaultFilters()},
			{Name: "v", Type: Char, Values: VarLen, Pipeline: DefaultFilters()}}}
	if err := Create(path, s); err != nil {
		t.Fatal(err)
	}
	files := localFiles(t)
	a, err := Open(ctx, files, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for k, time := range times {
		box := Box{{at(int64(3 * k)), at(int64(3*k + 9))}, {at(int64(k)), at(7)}}
		var values [2]Values
		walkBox(box, func([]Coord) {
			values[0].Data = append(values[0].Data, byte(k))
			values[1].Offsets = append(values[1].Offsets, uint64(len(values[1].Data)))
			values[1].Data = append(values[1].Data, "abc"[:k+1]...)
		})
		if err := a.writeDense(ctx, box, values[:], time, time); err != nil {
			t.Fatal(err)
		}
	}
	a, err = Open(ctx, files, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func sameValues(a, b Values) bool {
	return string(a.Data) == string(b.Data) && slices.Equal(a.Offsets, b.Offsets)
}

// TestFragmentsThatHide: which fragments libtiledb 1.6.3 reads, of the times in their names.
func TestFragmentsThatHide(t *testing.T) {
	for _, c := range []struct {
		times [3][2]uint64
		keeps []int
	}{
		{[3][2]uint64{{1, 5}, {3, 8}, {4, 4}}, []int{0, 1}},
		{[3][2]uint64{{1, 8}, {2, 5}, {9, 9}}, []int{0, 2}},
		{[3][2]uint64{{1, 5}, {5, 9}, {5, 5}}, []int{0, 1}},
		{[3][2]uint64{{2, 2}, {1, 3}, {2, 5}}, []int{1, 2}},
		{[3][2]uint64{{1, 4}, {1, 7}, {4, 7}}, []int{1}},
		{[3][2]uint64{{1, 5}, {1, 5}, {6, 6}}, []int{0, 2}},
		{[3][2]uint64{{3, 3}, {1, 5}, {1, 5}}, []int{1}},
		{[3][2]uint64{{1, 7}, {1, 5}, {1, 7}}, []int{0}},
	} {
		var all, want []*Fragment
		for k, at := range c.times {
			all = append(all, &Fragment{Name: fmt.Sprintf("__%d_%d_%032d", at[0], at[1], k), From: at[0], To: at[1]})
		}
		for _, k := range c.keeps {
			want = append(want, all[k])
		}
		keep, hidden := (&Array{}).hide(slices.Clone(all), nil)
		if !slices.Equal(keep, want) || len(keep)+len(hidden) != 3 {
			t.Errorf("%v: %d kept, want %v", c.times, len(keep), c.keeps)
		}
	}
}
