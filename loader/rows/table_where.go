package rows

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query"
)

// This file applies conditions in SQL, on place and on time to catalogs and other tables.
// Containers have their own in container_where.go, because they have levels.

// isData reports whether a table name in a query means the samples.
func isData(name string) bool {
	low := strings.ToLower(name)
	return low == "data" || low == "level0"
}

// query keeps the rows that meet a condition other than a comparison: SQL, a SELECT, a place or a
// time.
func (s *selector) query(ctx context.Context, w *spec.Condition) error {
	if w.Concat != nil {
		return fault.New(fault.Unsupported, "where", fault.NoOffset, "concat is a condition on containers")
	}
	if s.data == nil {
		read := s.table.Extras().Data
		if read == nil {
			return fault.New(fault.Unsupported, "dataset", fault.NoOffset,
				"sql, select, bbox and datetime are conditions on containers, catalogs and tables; "+
					"this dataset has no columns")
		}
		var err error
		if s.data, err = read(ctx); err != nil {
			return err
		}
	}
	s.init()
	var rows []int
	var err error
	switch {
	case w.SQL != "":
		rows, err = rowsWhere(ctx, &s.options, s.data, w.SQL)
	case w.Select != "":
		rows, err = s.selected(ctx, w.Select)
	default:
		rows, err = s.near(ctx, w)
	}
	if err != nil {
		return err
	}
	// The rows may have any order, such as an ORDER BY gives, so they are marked first.
	met := make([]bool, len(s.keep))
	for _, row := range rows {
		met[row] = true
	}
	for i := range s.keep {
		s.keep[i] = s.keep[i] && met[i]
	}
	return nil
}

// selected returns the rows that the result of a SELECT names in its column chaski:row, which "*"
// includes. The SELECT sees the rows that are left.
func (s *selector) selected(ctx context.Context, sql string) ([]int, error) {
	var left []int
	var numbers []int64
	for i, k := range s.keep {
		if k {
			left, numbers = append(left, i), append(numbers, int64(i))
		}
	}
	data := withRows(s.data.Take(left), numbers)
	tableOf := func(_ context.Context, name string) (*tables.Table, error) {
		if isData(name) {
			return data, nil
		}
		return nil, query.NoTable(name, []string{"data"})
	}
	table, err := query.RunOr(ctx, sql, []string{"data"}, tableOf, s.options.SQL, s.options.SQLLimits)
	if err != nil {
		return nil, err
	}
	if table.Index(rowColumn) < 0 {
		return nil, fault.New(fault.Unsupported, "select", fault.NoOffset,
			"its result has no column %q to tell samples by; SELECT * has", rowColumn)
	}
	// A query may compute any number, so each must be a row that it was shown.
	return rowNumbers(ctx, table, func(row int64) bool {
		return row >= 0 && row < int64(len(s.keep)) && s.keep[row]
	})
}

// near returns the rows that match a condition on place or time. If the condition names no column,
// the first of the usual columns counts; without a geometry, a box is compared with the bounds.
func (s *selector) near(ctx context.Context, w *spec.Condition) ([]int, error) {
	filter, err := w.Filter()
	if err != nil {
		return nil, err
	}
	if filter.Level != 0 {
		return nil, errors.New("a table has no levels")
	}
	if filter.Time == "" {
		filter.Time = s.first(spec.TimeColumns)
	}
	if filter.Box != nil && filter.Geometry == "" {
		if filter.Geometry = s.first(spec.PlaceColumns); filter.Geometry == "" && s.all(spec.BoundsColumns) {
			return s.inBounds(ctx, filter)
		}
	}
	return filter.Match(ctx, s.data)
}

// crsColumn is the column in which a catalog has the EPSG code of each row's bounds.
const crsColumn = "epsg"

// inBounds returns the rows whose bounds match a box. A row without bounds is in no box. Rows whose
// bounds are in an unknown CRS are neither inside nor outside: they are an error, which counts
// them. Rows that were dropped before are skipped, so that a condition before the box can leave
// them out.
func (s *selector) inBounds(ctx context.Context, f taco.Filter) ([]int, error) {
	bounds, err := s.bounds(ctx, spec.BoundsColumns)
	if err != nil {
		return nil, err
	}
	var rows []int
	// The box is projected once for each CRS. A CRS that cannot be compared has a nil region.
	regions := map[int64]*crs.Region{}
	unknown := notComparable{column: crsColumn}
	err = s.scan(ctx, crsColumn, func(row int64, k catalog.Kind, v catalog.Value) error {
		b := bounds[row]
		switch {
		case !s.keep[row] || math.IsNaN(b[0]+b[1]+b[2]+b[3]): // the sum is NaN if any bound is
			return nil
		case v.Null:
			unknown.add(row, "is null: it is not known in which CRS the bounds are")
			return nil
		case k != catalog.Int:
			return fault.New(fault.Unsupported, "column "+crsColumn, fault.NoOffset, "holds %ss, not EPSG codes", k)
		}
		region, ok := regions[v.Int]
		if !ok {
			if region, err = f.Box.In(int(v.Int)); err != nil {
				unknown.add(row, err.Error())
			}
			regions[v.Int] = region
		}
		meets := (*crs.Region).Meets
		if f.Rule == taco.Within {
			meets = (*crs.Region).Holds
		}
		switch {
		case region == nil && ok: // the first row of this CRS gave the reason
			unknown.n++
		case region != nil && meets(region, b[0], b[1], b[2], b[3]):
			rows = append(rows, int(row))
		}
		return nil
	})
	if fault.KindOf(err) == fault.NotFound {
		return nil, fault.New(fault.NotFound, "bbox", fault.NoOffset,
			"the table has the columns minx, miny, maxx and maxy, but no column %s that says in which CRS; "+
				"add one, or compare the numbers as they are by where", crsColumn)
	}
	if err == nil {
		err = unknown.err()
	}
	return rows, err
}

// notComparable counts the rows whose bounds cannot be compared with a box. It keeps the first of
// them with its reason.
type notComparable struct {
	column string
	n      int    // the number of rows
	first  int64  // the first such row
	why    string // the reason for that row
}

// add counts a row.
func (u *notComparable) add(row int64, why string) {
	if u.n == 0 {
		u.first, u.why = row, why
	}
	u.n++
}

// err returns fault.Unsupported with the first row and the number of rows, or nil if there are
// none.
func (u *notComparable) err() error {
	if u.n == 0 {
		return nil
	}
	return fault.New(fault.Unsupported, fmt.Sprintf("column %s of row %d", u.column, u.first), fault.NoOffset,
		"%s; bbox cannot be held against %d of the rows: leave them out by a condition before it, such as where=%q",
		u.why, u.n, u.column+" IN (4326, 32633)")
}

// first returns the first of the names that is a column, or "".
func (s *selector) first(names []string) string {
	for _, name := range names {
		if s.data.Index(name) >= 0 {
			return name
		}
	}
	return ""
}

// all reports whether all of the names are columns.
func (s *selector) all(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return s.data.Index(name) < 0 })
}
