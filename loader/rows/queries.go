package rows

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// IsData reports whether a table name in a query means the samples.
func IsData(name string) bool {
	low := strings.ToLower(name)
	return low == "data" || low == "level0"
}

// read reads the table that queries see.
func (s *Selector) read(ctx context.Context) error {
	if s.all != nil {
		return nil
	}
	if s.levels != nil && s.table.sides() == nil {
		s.all = s.levels.Top()
		return nil
	}
	if s.table.N > math.MaxInt32 { // rows are numbered in int32, which takes half the memory of int
		return fault.New(fault.Limit, "dataset", "%d rows: queries see at most 2^31-1", s.table.N)
	}
	all, err := s.table.Data(ctx)
	switch {
	case err != nil:
		return err
	case all == nil:
		return fault.New(fault.Unsupported, "dataset", "sql, select, bbox and datetime are conditions on containers, "+
			"catalogs and tables; this dataset has no columns")
	}
	s.all = numbered(all)
	return nil
}

// sql keeps the samples that meet a condition on the columns of data. It keeps a sample with several rows in data if
// one of them meets the condition.
func (s *Selector) sql(ctx context.Context, condition string) error {
	if err := s.read(ctx); err != nil {
		return err
	}
	// Without a SELECT before it, the condition runs over all samples. That needs no copy of those that are left.
	if s.Data == nil {
		rows, err := s.rowsWhere(ctx, s.all, condition)
		if err == nil {
			s.Meet(Int32s(rows))
		}
		return err
	}
	rows, err := s.rowsWhere(ctx, s.Data, condition)
	if err == nil {
		s.take(rows)
		s.Meet(slices.Values(s.Samples))
	}
	return err
}

// take keeps some rows of data.
func (s *Selector) take(rows []int) {
	samples := make([]int32, len(rows))
	for i, row := range rows {
		samples[i] = s.Samples[row]
	}
	s.Data, s.Samples = s.Data.Take(rows), samples
}

// Left returns the table that queries see, with the rows of the samples that are left, and the sample of each row.
func (s *Selector) Left(ctx context.Context) (*tables.Table, []int32, error) {
	if err := s.read(ctx); err != nil {
		return nil, nil, err
	}
	if s.Data == nil {
		s.Data, s.Samples = s.all, num.Range[int32](0, s.all.Len())
	}
	if s.Keep == nil {
		return s.Data, s.Samples, nil
	}
	var rows []int
	for row, i := range s.Samples {
		if s.Keep[i] {
			rows = append(rows, row)
		}
	}
	if len(rows) < len(s.Samples) { // else data needs no copy
		s.take(rows)
	}
	return s.Data, s.Samples, nil
}

// selects keeps the samples that the result of a SELECT names, by the column chaski:row, which "*" includes, or else by
// their ids. The SELECT sees the samples that are left, and later conditions see its result as data.
func (s *Selector) selects(ctx context.Context, sql string) error {
	data, samples, err := s.Left(ctx)
	if err != nil {
		return err
	}
	data = withRows(data, num.As[int64](samples))
	engine, err := tables.FindSQL()
	if err != nil {
		return err
	}
	table, err := engine.Run(ctx, sql, func(ctx context.Context, name string) (*tables.Table, error) {
		switch {
		case IsData(name):
			return data, nil
		case s.levels != nil:
			return s.levels.SQLTable(ctx, name)
		}
		return nil, tables.NoTable(name, []string{"data"})
	}, s.options.SQLLimits)
	if err != nil {
		return err
	}
	s.init()
	if s.Samples, err = s.named(ctx, table); err != nil {
		return err
	}
	s.Data = table.Without(rowColumn)
	s.Meet(slices.Values(s.Samples))
	return nil
}

// named returns the sample that each row of a query's result names. One that is not left, or an id that several of them
// have, is fault.Unsupported.
func (s *Selector) named(ctx context.Context, t *tables.Table) ([]int32, error) {
	samples := make([]int32, t.Len())
	if t.Index(rowColumn) >= 0 {
		// A query may compute any number, so each must be a row that it was shown.
		rows, err := rowNumbers(ctx, t, func(row int64) bool {
			return row >= 0 && row < int64(len(s.Keep)) && s.Keep[row]
		})
		for i, row := range rows {
			samples[i] = int32(row)
		}
		return samples, err
	}
	bad := func(format string, args ...any) ([]int32, error) {
		return nil, fault.New(fault.Unsupported, "select", format, args...)
	}
	if s.levels == nil {
		return bad("its result has no column %q to tell samples by; SELECT * has", rowColumn)
	}
	name := s.levels.IDColumn()
	if t.Index(name) < 0 {
		return bad("its result has no column %q to tell samples by", name)
	}
	values, err := t.Column(ctx, name)
	if err != nil {
		return nil, err
	}
	if values.Kind() != tables.String {
		return bad("the column %q of its result has type %v, not text", name, values.Type())
	}
	byID := map[string]int32{}
	err = s.table.ScanIDs(ctx, func(row int64, id string) error {
		if !s.Keep[row] {
			return nil
		}
		// Ids may repeat, for example in several joined files. That is an error only if the result has such an id.
		if _, twice := byID[id]; twice {
			row = -1
		}
		byID[id] = int32(row)
		return nil
	})
	for i := range samples {
		if err != nil {
			return nil, err
		}
		row, ok := byID[values.Str(i)]
		switch {
		case !ok || values.Null(i):
			return bad("row %d of its result has no id of a sample", i)
		case row < 0:
			return bad("several samples have the id %q: select the column %q too", values.Str(i), rowColumn)
		}
		samples[i] = row
	}
	return samples, err
}

// near keeps the samples that match a condition on place or time.
func (s *Selector) near(ctx context.Context, w *spec.Condition) error {
	filter, err := Filter(w)
	if err != nil {
		return err
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	s.init()
	find := s.inTable
	if s.levels != nil {
		find = s.levels.Near
	}
	rows, err := find(ctx, filter)
	s.Meet(Int32s(rows))
	return err
}

// inTable returns the rows of a table that match a condition on place or time. If the condition names no column,
// the first of the usual columns counts; without a geometry, a box is compared with the bounds.
func (s *Selector) inTable(ctx context.Context, filter spacetime.Filter) ([]int, error) {
	if filter.Level != 0 {
		return nil, errors.New("a table has no levels")
	}
	if filter.Time == "" {
		filter.Time = s.first(spec.TimeColumns)
	}
	if filter.Box != nil && filter.Geometry == "" {
		if filter.Geometry = s.first(spec.PlaceColumns); filter.Geometry == "" && s.has(spec.BoundsColumns) {
			return s.inBounds(ctx, filter)
		}
	}
	rows, err := filter.Match(ctx, s.all)
	if filter.Box != nil && filter.Geometry == "" {
		err = placeless(err)
	}
	return rows, err
}

// crsColumn is the column in which a catalog has the EPSG code of each row's bounds.
const crsColumn = "epsg"

// inBounds returns the rows whose bounds match a box. A row without bounds lies outside all boxes.
// Rows whose bounds are in an unknown CRS are neither inside nor outside: they are an error, which
// counts them. Rows that were dropped before are skipped, so a condition before the box can
// leave them out.
func (s *Selector) inBounds(ctx context.Context, f spacetime.Filter) ([]int, error) {
	bounds, err := Bounds(ctx, s.table, spec.BoundsColumns)
	if err != nil {
		return nil, err
	}
	var rows []int
	// The box is projected once for each CRS. A CRS that cannot be compared has a nil region.
	regions := map[int64]*crs.Region{}
	unknown, firstUnknown, why := 0, int64(0), "" // rows that cannot be compared, and the first one with its reason
	err = scan(ctx, s.table, crsColumn, func(row int64, c *Column, v catalog.Value) error {
		box := bounds[row]
		reason := ""
		switch region, known := regions[v.Int]; {
		case !s.Keep[row] || math.IsNaN(box[0]+box[1]+box[2]+box[3]): // the sum is NaN if any bound is
			return nil
		case v.Null:
			reason = "is null: it is not known in which CRS the bounds are"
		case c.Kind != catalog.Int:
			return fault.New(fault.Unsupported, "column "+crsColumn, "holds %ss, not EPSG codes", c.Kind)
		case !known:
			region, err := f.Box.In(int(v.Int))
			if regions[v.Int] = region; err != nil {
				reason = err.Error()
			}
		case region == nil: // an earlier row of this CRS gave its reason, and the error has only the first row's
			reason = why
		}
		if reason != "" {
			if unknown++; unknown == 1 {
				firstUnknown, why = row, reason
			}
			return nil
		}
		meets := (*crs.Region).Meets
		if f.Rule == column.Within {
			meets = (*crs.Region).Holds
		}
		if meets(regions[v.Int], box[0], box[1], box[2], box[3]) {
			rows = append(rows, int(row))
		}
		return nil
	})
	if fault.KindOf(err) == fault.NotFound {
		return nil, fault.New(fault.NotFound, "bbox", "the table has the columns minx, miny, maxx and maxy, but no "+
			"column %s that says in which CRS; add one, or compare the numbers as they are by where", crsColumn)
	}
	if err == nil && unknown > 0 {
		err = fault.New(fault.Unsupported, fmt.Sprintf("column %s of row %d", crsColumn, firstUnknown),
			"%s; bbox cannot be held against %d of the rows: leave them out by a condition before it, such as where=%q",
			why, unknown, crsColumn+" IN (4326, 32633)")
	}
	return rows, err
}

// first returns the first of the names that is a column, or "".
func (s *Selector) first(names []string) string {
	for _, name := range names {
		if s.all.Index(name) >= 0 {
			return name
		}
	}
	return ""
}

// has reports whether all of the names are columns.
func (s *Selector) has(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return s.all.Index(name) < 0 })
}

// rowColumn is the column of the table that a query sees with the number of each row, by which its
// result is traced back to samples.
const rowColumn = "chaski:row"

// rowsWhere returns the rows of a table that meet a condition, ascending.
func (s *Selector) rowsWhere(ctx context.Context, t *tables.Table, condition string) (rows []int, err error) {
	err = s.options.SQLLimits.Within(ctx, func(ctx context.Context) (err error) {
		engine, err := tables.FindSQL()
		if err == nil {
			rows, err = engine.Where(ctx, t, condition)
		}
		return err
	})
	return rows, err
}

// withRows returns a table with the column chaski:row added.
func withRows(t *tables.Table, rows []int64) *tables.Table {
	number := tables.NewInts(tables.Ints, rows, nil)
	return tables.Join(t, tables.FromVectors([]string{rowColumn}, []*tables.Vector{number}))
}

// rowNumbers returns the column chaski:row of a result, which must exist. A number for which good is
// false is fault.Unsupported.
func rowNumbers(ctx context.Context, t *tables.Table, good func(row int64) bool) ([]int, error) {
	values, err := t.Column(ctx, rowColumn)
	if err != nil {
		return nil, err
	}
	rows := make([]int, t.Len())
	for i := range rows {
		row := int64(-1)
		if values.Kind() == tables.Int64 && !values.Null(i) {
			row = values.Int(i)
		}
		if !good(row) {
			return nil, fault.New(fault.Unsupported, "select",
				"row %d of its result has no row of a sample in %q", i, rowColumn)
		}
		rows[i] = int(row)
	}
	return rows, nil
}

// Int32s yields row numbers as int32.
func Int32s(rows []int) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for _, row := range rows {
			if !yield(int32(row)) {
				return
			}
		}
	}
}

// Filter returns the condition on place or time as a filter of tables. Errors are faults of the user's input, not of a
// file.
func Filter(c *spec.Condition) (spacetime.Filter, error) {
	box, times, err := c.Place()
	filter := spacetime.Filter{Box: box, Times: times, Level: c.Level}
	if box == nil {
		filter.Time = c.Column
	} else if filter.Geometry = c.Column; c.Within {
		filter.Rule = column.Within
	}
	return filter, err
}
