package taco

import (
	"context"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	_ "github.com/chaski-eo/chaski/format/tables/geometries" // of samples
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/format/tables/wkb"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// Filter returns the visible rows of level 0 that match, in order. Rows without a geometry or time
// never match. An unknown column or level is fault.NotFound.
func (d *Dataset) Filter(ctx context.Context, f spacetime.Filter) ([]int, error) {
	left, err := d.Select(ctx, f)
	if err != nil || left == nil {
		return nil, err
	}
	return left[0], nil
}

// Select is Filter, but also returns the rows of the levels below 0, down to f.Level: there the
// visible rows that match, and between them the rows above one that does.
func (d *Dataset) Select(ctx context.Context, f spacetime.Filter) (store.Selection, error) {
	if len(d.parts) == 0 {
		return nil, nil
	}
	bases, err := d.bases(ctx, f.Level)
	if err != nil {
		return nil, err
	}
	var match []int
	for i, part := range d.parts {
		if f.Level >= part.Levels() { // a Tortilla without samples at this level
			continue
		}
		table, err := part.Table(ctx, f.Level)
		if err != nil {
			return nil, err
		}
		rows, err := f.Match(ctx, table)
		if err != nil {
			return nil, fault.WithFile(err, part.URI)
		}
		for _, row := range rows {
			match = append(match, bases[i]+row)
		}
	}
	left := make(store.Selection, f.Level+1)
	for level := f.Level; ; level-- {
		visible, err := d.Visible(ctx, level)
		if err != nil {
			return nil, err
		}
		if left[level] = intersection(match, visible); level == 0 {
			return left, nil
		}
		parents, err := d.Parents(ctx, level)
		if err != nil {
			return nil, err
		}
		match = above(left[level], parents)
	}
}

// RowsBelow returns the selected rows of a level, in order, that lie below selected rows of level 0.
func (d *Dataset) RowsBelow(ctx context.Context, left store.Selection, level int) ([]int, error) {
	rows := left[0]
	for k := 1; k <= level; k++ {
		parents, err := d.Parents(ctx, k)
		if err != nil {
			return nil, err
		}
		above := rows
		rows = []int{}
		for i, p := range parents {
			if _, ok := slices.BinarySearch(above, int(p)); ok {
				rows = append(rows, i)
			}
		}
		if k < len(left) {
			rows = intersection(rows, left[k])
		}
	}
	return rows, nil
}

// And returns the rows in both selections. A row below level 0 is dropped if nothing below it
// remains on the level of a condition. A row of level 0 is not, because conditions are about
// samples: two of them may hold for different rows of one sample.
func (d *Dataset) And(ctx context.Context, a, b store.Selection) (store.Selection, error) {
	if len(a) < len(b) {
		a, b = b, a
	}
	both := slices.Clone(a)
	for k := range b {
		both[k] = intersection(a[k], b[k])
	}
	for k := len(both) - 2; k > 0; k-- {
		parents, err := d.Parents(ctx, k+1)
		if err != nil {
			return nil, err
		}
		both[k] = intersection(both[k], above(both[k+1], parents))
	}
	return both, nil
}

// above returns the parents of some rows, in order.
func above(rows []int, parents []int32) []int {
	up := make([]int, len(rows))
	for i, row := range rows {
		up[i] = int(parents[row])
	}
	slices.Sort(up)
	return slices.Compact(up)
}

// intersection returns the numbers in both of two ascending lists.
func intersection(a, b []int) []int {
	both, k := []int{}, 0
	for _, row := range a {
		for k < len(b) && b[k] < row {
			k++
		}
		if k < len(b) && b[k] == row {
			both = append(both, row)
		}
	}
	return both
}

// mayMatch reports whether file i of a TACOLLECTION.json may hold a row that matches the filter. It
// returns false only if the extent of the file proves the opposite; see extentOf.
func mayMatch(f *spacetime.Filter, c *taco2.Collection, i int) bool {
	extent := c.Sources.Extent(i)
	level, prefix := extentOf(c)
	if extent == nil || prefix == "" || f.Level != level {
		return true
	}
	columns := c.Columns(level)
	is := func(name string) bool { return slices.Contains(columns, name) }
	if f.Box != nil && f.GeometryColumn(is) == prefix+"centroid" && !mayMeet(*f.Box, extent.Spatial) {
		return false
	}
	// If there is a column of middles, the extent covers the middles of the rows that have one. Other rows may begin at
	// any time, and a middle may lie before its start, so such an extent proves nothing.
	if f.Times == nil || len(extent.Temporal) != 2 || f.TimeColumn(is) != prefix+"time_start" ||
		slices.Contains(columns, prefix+"time_middle") {
		return true
	}
	first, err := column.ParseTimes(extent.Temporal[0])
	last, err2 := column.ParseTimes(extent.Temporal[1])
	return err != nil || err2 != nil || f.Times.First <= last.Last && first.First <= f.Times.Last
}

// extentOf returns the level whose rows the extents of a TACOLLECTION.json describe, and the prefix of the columns that
// they were computed from, or "" if that is unknown. tacotoolbox takes the first level with both a centroid and a
// start, and prefers columns of STAC to columns of ISTAC. Its extent is the box of the centroids, and the range of the
// middles, or of the starts if no row has a middle.
func extentOf(c *taco2.Collection) (level int, prefix string) {
	for level = 0; ; level++ {
		columns := c.Columns(level)
		if len(columns) == 0 {
			return 0, ""
		}
		for _, prefix := range []string{"stac:", "istac:"} {
			if slices.Contains(columns, prefix+"centroid") && slices.Contains(columns, prefix+"time_start") {
				return level, prefix
			}
		}
	}
}

// mayMeet reports whether a box may contain one of the centroids that a spatial extent describes.
//
// If a file has centroids on both sides of longitude 0, tacotoolbox 0.26.9 writes the longitudes of one side only, the
// one with the larger span. Hence an extent on one side says nothing about the other; its latitudes cover all
// centroids. An extent from east to west may cross the antimeridian or have swapped corners, and one outside of ±180
// degrees counts longitudes differently: of these only the latitudes are used.
func mayMeet(box crs.Box, spatial []float64) bool {
	if len(spatial) != 4 || spatial[1] > spatial[3] {
		return true
	}
	place, err := wkb.NewPlace(box)
	if err != nil {
		return true
	}
	west, south, east, north := spatial[0], spatial[1], spatial[2], spatial[3]
	meets := func(w, e float64) bool { return place.Meets(wkb.NewBox(w, south, e, north)) }
	switch {
	case west > east || west < -180 || east > 180:
		return meets(-180, 180)
	case west >= 0:
		return meets(west, east) || meets(-180, math.Nextafter(0, -1))
	case east < 0:
		return meets(west, east) || meets(0, 180)
	}
	return meets(west, east)
}
