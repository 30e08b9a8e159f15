package columns

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// Compute computes columns of samples from their rasters: see Parse.
type Compute struct{ names map[string]bool }

// Inspect implements build.Options.Inspect. Rasters are TIFFs, rumi files, PNGs and JPEGs; other files, and padding,
// have nulls. A raster that cannot be read is an error that names its sample.
//
// Levels with a raster get the columns of the raster. A folder gets the columns about the place of its first raster:
// stac and istac.
func (c *Compute) Inspect(levels []build.Level) build.Inspection {
	rasters := make([][]*Raster, len(levels))
	for k := range levels {
		rasters[k] = make([]*Raster, len(levels[k].Rows))
	}
	inspection := build.Inspection{Columns: func(ctx context.Context) ([]*tables.Table, error) {
		return c.columns(ctx, levels, rasters)
	}}
	if !c.reads() {
		return inspection
	}
	inspection.File = func(ctx context.Context, k, row int, r source.Reader) (err error) {
		rasters[k][row], err = c.read(ctx, r)
		return err
	}
	return inspection
}

// columns returns the columns of each level, of its rasters; other files have nil.
func (c *Compute) columns(ctx context.Context, levels []build.Level, rasters [][]*Raster) ([]*tables.Table, error) {
	inherit(levels, rasters)
	out := make([]*tables.Table, len(levels))
	for k := range levels {
		set, err := c.level(ctx, levels, rasters, k)
		if err != nil {
			return nil, fault.WithPart(err, "level "+string(rune('0'+k)), fault.NoOffset)
		}
		if set.Len() > 0 {
			out[k] = set.Table(len(levels[k].Rows))
		}
	}
	return out, nil
}

// reads reports whether a column needs the rasters.
func (c *Compute) reads() bool {
	return len(c.rasterColumns(true)) > 0 || len(c.rasterColumns(false)) > 0
}

// inherit gives each folder the raster of its first row that has one.
func inherit(levels []build.Level, rasters [][]*Raster) {
	for k := len(levels) - 1; k > 0; k-- {
		for i := range levels[k].Rows {
			up := levels[k].Rows[i].Parent
			if rasters[k][i] != nil && rasters[k-1][up] == nil {
				rasters[k-1][up] = rasters[k][i]
			}
		}
	}
}

// rasterColumns returns the columns of rasters that are computed, about place or not.
func (c *Compute) rasterColumns(place bool) (names []string) {
	for _, column := range columns {
		if column.place == place && c.names[column.extension] {
			names = append(names, column.name)
		}
	}
	return names
}

// level returns the columns of level k.
func (c *Compute) level(ctx context.Context, levels []build.Level, rasters [][]*Raster, k int) (*build.Columns, error) {
	set, rows := &build.Columns{}, levels[k].Rows
	files := slices.Clone(rasters[k]) // a folder has no pixels of its own
	for i := range rows {
		if rows[i].Folder {
			files[i] = nil
		}
	}
	exists := func(r *Raster) bool { return r != nil }
	if slices.ContainsFunc(rasters[k], exists) {
		addRasters(set, rasters[k], c.rasterColumns(true))
	}
	for _, extension := range []string{"stac", "istac"} {
		if !c.names[extension] {
			continue
		}
		if err := c.times(ctx, set, &levels[k], extension+":"); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(files, exists) {
		addRasters(set, files, c.rasterColumns(false))
	}
	return set, nil
}

// The columns of times of the extensions stac and istac, without their prefix.
const (
	timeStart  = "time_start"
	timeEnd    = "time_end"
	timeMiddle = "time_middle"
)

// timestamps is the type of the columns of times: microseconds since 1970, in UTC.
var timestamps = tables.Type{Kind: tables.Timestamp}

// times casts the columns of times that a level has for an extension to timestamps. If there is an end, it adds the
// middle, rounded down to a microsecond as tacotoolbox does. A time is a timestamp, a date, a number
// of microseconds since 1970, or text such as 2024-05-01T10:00:00Z. An end before its start is an error.
func (c *Compute) times(ctx context.Context, set *build.Columns, l *build.Level, prefix string) error {
	start, err := timesOf(ctx, l, prefix+timeStart)
	if start == nil || err != nil {
		return err
	}
	set.Add(prefix+timeStart, start)
	end, err := timesOf(ctx, l, prefix+timeEnd)
	if end == nil || err != nil {
		return err
	}
	set.Add(prefix+timeEnd, end)
	middle, none := make([]int64, len(l.Rows)), make([]bool, len(l.Rows))
	for i := range middle {
		if none[i] = start.Null(i) || end.Null(i); none[i] {
			continue
		}
		first, last := start.Int(i), end.Int(i)
		if first > last {
			return fault.New(fault.Corrupt, fmt.Sprintf("sample %q", l.Rows[i].ID), "%s is %s, after %s, which is %s",
				prefix+timeStart, tables.FormatTimestamp(first), prefix+timeEnd, tables.FormatTimestamp(last))
		}
		// Half of the difference is added, because their sum would overflow for times far away.
		middle[i] = first + int64(uint64(last-first)/2)
	}
	if l.Table.Index(prefix+timeMiddle) < 0 {
		set.Add(prefix+timeMiddle, tables.NewInts(timestamps, middle, none))
	}
	return nil
}

// timesOf returns a column as timestamps, or nil if the level does not have it.
func timesOf(ctx context.Context, l *build.Level, name string) (*tables.Vector, error) {
	if l.Table.Index(name) < 0 {
		return nil, nil
	}
	values, err := l.Table.Column(ctx, name)
	if err != nil {
		return nil, err
	}
	switch values.Kind() {
	case tables.Timestamp:
		return values, nil
	case tables.Date, tables.Int64, tables.String:
		values, err = build.Cast(values, timestamps)
		return values, fault.WithPart(err, "column "+name, fault.NoOffset)
	}
	return nil, fault.New(fault.Unsupported, "column "+name, "is of type %v, not of times", values.Type())
}

// Extensions are the names that Parse accepts, in the order of the help.
var Extensions = []string{"stac", "istac", "scaling", "header", "index"}

// Parse reads a list of extensions, such as "stac,index". Errors have no kind.
func Parse(list string) (*Compute, error) {
	compute := &Compute{names: map[string]bool{}}
	for item := range strings.SplitSeq(list, ",") {
		name := strings.TrimSpace(item)
		if !slices.Contains(Extensions, name) {
			return nil, fmt.Errorf("%q must be one of %s", name, strings.Join(Extensions, ", "))
		}
		if compute.names[name] {
			return nil, fmt.Errorf("%q is given twice", name)
		}
		compute.names[name] = true
	}
	return compute, nil
}
