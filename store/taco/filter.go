package taco

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/wkb"
)

// Rule decides when a geometry matches a box.
type Rule = wkb.Rule

// Rules.
const (
	Intersects = wkb.Intersects // they have a point in common
	Within     = wkb.Within     // the geometry does not leave the box, and does not only touch it
)

// Filter is a condition on the place and time of samples. Both must hold for the same row of Level.
// A sample of level 0 matches if a row of Level below it does.
type Filter struct {
	Box  *crs.Box // nil: anywhere
	Rule Rule
	// Geometry names the column of geometries (well-known binary, strings, or structs of lon and lat). Default: the
	// first of istac:geometry, stac:geometry, spatial:geometry, stac:centroid, istac:centroid, spatial:centroid, and in
	// TACO 3 for rows without a geometry the centroid. Geometries are in longitude and latitude, unless the table says
	// otherwise: istac:geometry is in the CRS of istac:crs, a GeoParquet file in the CRS of its metadata.
	Geometry string

	Times *Times // nil: at any time
	// Time names the column of times. Default: the first of istac:time_start, stac:time_start, stac:datetime,
	// temporal:datetime, and in TACO 3 for rows without a datetime the start.
	Time string

	Level int

	// Keep keeps decoded geometries in memory, like other columns, for further filters.
	Keep bool
}

var (
	geometryColumns = []string{"istac:geometry", "stac:geometry", "spatial:geometry", "stac:centroid", "istac:centroid",
		"spatial:centroid"}
	timeColumns = []string{"istac:time_start", "stac:time_start", "stac:datetime", "temporal:datetime"}
	// insteadColumns stand for null in another column, where no column was named: a row of TACO 3 has a datetime, or a
	// start and an end; and it may have a centroid alone.
	insteadColumns = map[string]string{"stac:geometry": "stac:centroid", "spatial:geometry": "spatial:centroid",
		"stac:datetime": "stac:start_datetime", "temporal:datetime": "temporal:start_datetime"}
)

// Filter returns the visible rows of level 0 that match, in order. Rows without a geometry or time
// do not match. An unknown column or level is fault.NotFound.
func (d *Dataset) Filter(ctx context.Context, f Filter) ([]int, error) {
	left, err := d.Select(ctx, f)
	if err != nil || left == nil {
		return nil, err
	}
	return left[0], nil
}

// Selection has the selected rows of each level, in order. Of levels deeper than it has, all rows
// below selected ones are selected.
type Selection [][]int

// Select is Filter, but also returns the rows of the levels below 0, down to f.Level: there the
// visible rows that match, and between them the rows above one that does.
func (d *Dataset) Select(ctx context.Context, f Filter) (Selection, error) {
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
		rows, err := f.rows(ctx, part.URI, table)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			match = append(match, bases[i]+row)
		}
	}
	left := make(Selection, f.Level+1)
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
func (d *Dataset) RowsBelow(ctx context.Context, left Selection, level int) ([]int, error) {
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
func (d *Dataset) And(ctx context.Context, a, b Selection) (Selection, error) {
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

// Match returns the rows of a table that match, in order. Level is ignored. An unknown column is fault.NotFound.
func (f Filter) Match(ctx context.Context, t *tables.Table) ([]int, error) { return f.rows(ctx, "", t) }

// rows returns the rows of a table that match. uri is the container of the table.
func (f *Filter) rows(ctx context.Context, uri string, t *tables.Table) (rows []int, err error) {
	if f.Times != nil || f.Box != nil {
		rows = model.UpTo[int](t.Len())
	}
	if f.Times != nil {
		rows, err = f.either(ctx, t, f.Time, timeColumns, "time", rows, f.timeRows)
	}
	if f.Box != nil && err == nil {
		rows, err = f.either(ctx, t, f.Geometry, geometryColumns, "geometry", rows, f.boxRows)
	}
	if err != nil {
		return nil, fault.WithFile(fault.WithPart(err, model.LevelName(f.Level), fault.NoOffset), uri)
	}
	return rows, nil
}

// either returns the rows that match by a column, which is the named one or the first of some that exists. Where that
// is null, and nobody named a column, the column that stands for it decides.
func (f *Filter) either(ctx context.Context, t *tables.Table, name string, auto []string, what string, rows []int,
	match func(ctx context.Context, rows []int, t *tables.Table, i int) ([]int, error)) ([]int, error) {
	column, named := chosen(name, auto, func(name string) bool { return t.Index(name) >= 0 })
	i, other := t.Index(column), t.Index(insteadColumns[column])
	switch {
	case column == "":
		return nil, fault.New(fault.NotFound, "", fault.NoOffset, "no %s column (%s): the columns are %s", what,
			strings.Join(auto, ", "), tables.Names(t.Columns()))
	case i < 0:
		return nil, t.NoColumn(column)
	case named || other < 0:
		return match(ctx, rows, t, i)
	}
	values, err := t.At(ctx, i)
	if err != nil {
		return nil, err
	}
	var null []int
	for _, row := range rows {
		if values.Null(row) {
			null = append(null, row)
		}
	}
	first, err := match(ctx, rows, t, i)
	if err != nil || len(null) == 0 {
		return first, err
	}
	second, err := match(ctx, null, t, other)
	both := slices.Concat(first, second)
	slices.Sort(both)
	return both, err
}

// chosen returns the column that a filter names or, if it names none, the first of some that there is, or "".
func chosen(name string, auto []string, is func(name string) bool) (column string, named bool) {
	if name != "" && name != "auto" {
		return name, true
	}
	if k := slices.IndexFunc(auto, is); k >= 0 {
		column = auto[k]
	}
	return column, false
}

// timeRows keeps the rows whose time lies in the range. Numbers are seconds since 1970 UTC, text is a date or a
// timestamp, which counts by its beginning.
func (f *Filter) timeRows(ctx context.Context, rows []int, t *tables.Table, i int) ([]int, error) {
	values, err := t.At(ctx, i)
	if err != nil {
		return nil, err
	}
	var at func(i int) (int64, error) // microseconds
	switch values.Kind() {
	case tables.Null:
		return rows[:0], nil
	case tables.Timestamp:
		at = func(i int) (int64, error) { return values.Int(i), nil }
	case tables.Date:
		at = func(i int) (int64, error) { return scaled(values.Int(i), day), nil }
	case tables.Int64:
		at = func(i int) (int64, error) { return scaled(values.Int(i), second), nil }
	case tables.Float64:
		at = func(i int) (int64, error) { return int64(math.Round(values.Float(i) * second)), nil }
	case tables.String:
		at = func(i int) (int64, error) {
			times, err := ParseTimes(values.Str(i))
			if err != nil {
				err = fault.New(fault.Unsupported, fmt.Sprintf("row %d", i), fault.NoOffset, "%v", err)
			}
			return times.First, err
		}
	default:
		return nil, fault.New(fault.Unsupported, "column", fault.NoOffset, "times of type %v", values.Type())
	}
	keep := rows[:0]
	for _, i := range rows {
		// A float beyond int64 would become another number on another processor.
		if values.Null(i) || values.Kind() == tables.Float64 && !(math.Abs(values.Float(i)*second) < 1<<63) {
			continue
		}
		t, err := at(i)
		if err != nil {
			return nil, err
		}
		if t >= f.Times.First && t <= f.Times.Last {
			keep = append(keep, i)
		}
	}
	return keep, nil
}

// Microseconds.
const (
	second = 1_000_000
	day    = 24 * 60 * 60 * second
)

// scaled returns a number of units in microseconds, or the first or last of them if it is before or after it.
func scaled(n, unit int64) int64 {
	switch {
	case n > math.MaxInt64/unit:
		return math.MaxInt64
	case n < math.MinInt64/unit:
		return math.MinInt64
	}
	return n * unit
}

// boxRows keeps the rows whose geometry in column i matches the box. rows are in ascending order.
func (f *Filter) boxRows(ctx context.Context, rows []int, t *tables.Table, i int) ([]int, error) {
	column := t.Columns()[i]
	switch column.Type.Kind {
	case tables.Null:
		return nil, nil
	case tables.Binary, tables.String, tables.Struct:
	default:
		return nil, fault.New(fault.Unsupported, "column "+column.Name, fault.NoOffset,
			"geometries of type %v, want binary or strings", column.Type)
	}
	place, err := wkb.NewPlace(*f.Box)
	if err != nil {
		return nil, fault.New(fault.Unsupported, "bbox", fault.NoOffset, "%v", err)
	}
	// Rows that are kept overwrite rows that were read, so that they need no memory of their own.
	keep := rows[:0]
	match := func(row int, geometry []byte, system position) error {
		ok, err := place.Match(geometry, f.Rule, system)
		if err != nil {
			return fault.WithPart(err, fmt.Sprintf("row %d", row), fault.NoOffset)
		}
		if ok {
			keep = append(keep, row)
		}
		return nil
	}
	var binary []byte
	if column.Type.Kind == tables.Struct { // points of lon and lat
		values, err := t.At(ctx, i)
		for k := 0; k < len(rows) && err == nil; k++ {
			row := rows[k]
			var lon, lat float64
			if lon, lat, err = Centroid(values, row); err == nil && !math.IsNaN(lon) && !math.IsNaN(lat) {
				binary = wkb.AppendPoint(binary[:0], lon, lat)
				err = match(row, binary, nil)
			}
		}
		return keep, err
	}
	systems, err := systemsOf(ctx, t, column.Name)
	if err != nil {
		return nil, err
	}
	err = t.Scan(ctx, i, rows, f.Keep, func(row int, geometry []byte) error {
		system, err := systems.of(row)
		if err != nil {
			return err
		}
		if column.Type.Kind == tables.String {
			if binary, err = wkb.AppendText(binary[:0], string(geometry)); err != nil {
				return fault.WithPart(err, fmt.Sprintf("row %d", row), fault.NoOffset)
			}
			geometry = binary
		}
		return match(row, geometry, system)
	})
	return keep, err
}

// Centroid returns the point in a row of a column: well-known binary, or as in TACO 3 a struct of lon and lat. Null
// gives NaN.
func Centroid(v *tables.Vector, row int) (lon, lat float64, err error) {
	typ := v.Type()
	switch {
	case v.Null(row):
		return math.NaN(), math.NaN(), nil
	case typ.Kind == tables.Binary:
		return wkb.Point(v.Bytes(row))
	case typ.Kind == tables.Struct && len(typ.Fields) == 2 && typ.Fields[0].Name == "lon" &&
		typ.Fields[1].Name == "lat" && typ.Fields[0].Type.Kind == tables.Float64 &&
		typ.Fields[1].Type.Kind == tables.Float64:
		values, vector := v.Field(0), v.Field(1)
		if values.Null(row) || vector.Null(row) {
			return math.NaN(), math.NaN(), nil
		}
		return values.Float(row), vector.Float(row), nil
	}
	return 0, 0, fault.New(fault.Unsupported, "", fault.NoOffset,
		"holds values of type %v, not well-known binary or structs of lon and lat", typ)
}

// mayMatch reports whether file i of a TACOLLECTION.json may hold a row that matches the filter. It
// returns false only if the extent of the file proves the opposite; see extentOf.
func (f *Filter) mayMatch(c *taco2.Collection, i int) bool {
	extent := c.Sources.Extent(i)
	level, prefix := extentOf(c)
	if extent == nil || prefix == "" || f.Level != level {
		return true
	}
	columns := c.Columns(level)
	column := func(name string, auto []string) string {
		name, _ = chosen(name, auto, func(name string) bool { return slices.Contains(columns, name) })
		return name
	}
	if f.Box != nil && column(f.Geometry, geometryColumns) == prefix+"centroid" && !mayMeet(*f.Box, extent.Spatial) {
		return false
	}
	// If there is a column of middles, the extent covers the middles of the rows that have one. Rows without a middle
	// may begin at any time, and a middle need not lie after its start, so that such an extent proves nothing.
	if f.Times == nil || len(extent.Temporal) != 2 || column(f.Time, timeColumns) != prefix+"time_start" ||
		slices.Contains(columns, prefix+"time_middle") {
		return true
	}
	first, err := ParseTimes(extent.Temporal[0])
	last, err2 := ParseTimes(extent.Temporal[1])
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
