// Package spacetime finds the rows of a table that lie in a box on the ground and in a range of time.
package spacetime

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/crs"
)

// Filter is a condition on the place and time of samples. Both must hold for the same row of Level.
// A sample of level 0 matches if a row of Level below it does.
type Filter struct {
	Box  *crs.Box // nil: anywhere
	Rule column.Rule
	// Geometry names the column of geometries (well-known binary, strings, or structs of lon and lat). Default: the
	// first of istac:geometry, stac:geometry, spatial:geometry, stac:centroid, istac:centroid, spatial:centroid, and in
	// TACO 3 for rows without a geometry the centroid. Geometries are in longitude and latitude, unless the table says
	// otherwise: istac:geometry is in the CRS of istac:crs, a GeoParquet file in the CRS of its metadata.
	Geometry string

	Times *column.Times // nil: at any time
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

// Match returns the rows of a table that match, in order. Level only names the table in errors. An unknown column is
// fault.NotFound.
func (f *Filter) Match(ctx context.Context, t *tables.Table) (rows []int, err error) {
	if f.Times != nil || f.Box != nil {
		rows = make([]int, t.Len())
		for row := range rows {
			rows[row] = row
		}
	}
	if f.Times != nil {
		rows, err = f.either(ctx, t, f.Time, timeColumns, "time", rows, f.timeRows)
	}
	if f.Box != nil && err == nil {
		rows, err = f.either(ctx, t, f.Geometry, geometryColumns, "geometry", rows, f.boxRows)
	}
	if err != nil {
		return nil, fault.WithPart(err, "level"+strconv.Itoa(f.Level), fault.NoOffset)
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
		return nil, fault.New(fault.NotFound, "", "no %s column (%s): the columns are %s", what,
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

// GeometryColumn returns the column of geometries among those that there are, or "".
func (f *Filter) GeometryColumn(is func(name string) bool) string {
	name, _ := chosen(f.Geometry, geometryColumns, is)
	return name
}

// TimeColumn returns the column of times among those that there are, or "".
func (f *Filter) TimeColumn(is func(name string) bool) string {
	name, _ := chosen(f.Time, timeColumns, is)
	return name
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
			times, err := column.ParseTimes(values.Str(i))
			if err != nil {
				err = fault.New(fault.Unsupported, fmt.Sprintf("row %d", i), "%v", err)
			}
			return times.First, err
		}
	default:
		return nil, fault.New(fault.Unsupported, "column", "times of type %v", values.Type())
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

// boxRows keeps the rows whose geometry lies in the box.
func (f *Filter) boxRows(ctx context.Context, rows []int, t *tables.Table, i int) ([]int, error) {
	return InBox(ctx, f, rows, t, i)
}

// InBox keeps the rows whose geometry in column i matches the box, as package format/tables/geometries does. rows
// ascend. Without that package it is an error: fault.Unsupported.
var InBox = func(ctx context.Context, f *Filter, rows []int, t *tables.Table, i int) ([]int, error) {
	return nil, fault.NotImported("bbox", "reads columns of geometries", "format/tables/geometries")
}
