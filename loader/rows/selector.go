package rows

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/internal/crs/lonlat"
	"github.com/chaski-eo/chaski/internal/join"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// suit makes an operand one that a column of a table can be compared with. A string that is compared with dates or
// timestamps becomes a number in the unit of the column.
func suit(c *Column, t *Table, name string, o *spec.Operand) error {
	if o.IsText && c.Unit != 0 {
		if err := o.Count(c.Unit); err != nil {
			return fmt.Errorf("column %q: %w", name, err)
		}
	}
	// An empty table compares nothing: any operand passes.
	if t.N == 0 {
		return nil
	}
	return o.Suits(c.Kind, name)
}

// Selector narrows down the samples of a dataset, one condition after the other.
type Selector struct {
	// Keep has the samples that remain; nil for all.
	Keep []bool
	// Data is what queries see in place of all samples: the result of the last SELECT or concat; nil without.
	Data *tables.Table
	// Samples has the sample of each row of Data.
	Samples []int32

	clause  string // says what left no sample, for errors; "" if some remain
	table   *Table
	options resources.Options // runs queries
	levels  Levels            // nil for a table without levels
	all     *tables.Table     // what queries see: a row for each sample; nil before the first query
}

// Levels are what conditions ask of a table whose samples are the top of several levels, as of containers.
type Levels interface {
	// Top returns level 0, whose rows are the samples.
	Top() *tables.Table
	// Near returns the rows of level 0 that match a condition on place or time.
	Near(ctx context.Context, f spacetime.Filter) ([]int, error)
	// Concat applies conditions to each group of the files of the dataset, and joins what remains.
	Concat(ctx context.Context, s *Selector, groups []spec.Group) error
	// SQLTable returns a table that queries know by name, but not data.
	SQLTable(ctx context.Context, name string) (*tables.Table, error)
	// IDColumn names the column of level 0 with the ids.
	IDColumn() string
}

// NewSelector returns a selector of all samples of a table. levels is nil for a table without levels.
func NewSelector(t *Table, levels Levels, o resources.Options) *Selector {
	return &Selector{table: t, levels: levels, options: o}
}

// init allocates keep with all rows. Without conditions it stays nil: a run over all rows
// needs no list of them.
func (s *Selector) init() {
	if s.Keep == nil {
		s.Keep = slices.Repeat([]bool{true}, int(s.table.N))
	}
}

// Meet keeps the samples that are among some, which may repeat and have any order, such as an ORDER BY gives.
func (s *Selector) Meet(samples iter.Seq[int32]) {
	s.init()
	met := make([]bool, len(s.Keep))
	for i := range samples {
		met[i] = true
	}
	for i := range s.Keep {
		s.Keep[i] = s.Keep[i] && met[i]
	}
}

// Apply keeps the samples that meet the conditions and the split of a subset, but for its bad ones. Each condition sees
// what those before it left, and the split comes last.
func (s *Selector) Apply(ctx context.Context, subset *spec.Subset) error {
	if subset.IDList != "" {
		if err := s.listed(ctx, subset); err != nil {
			return InPart(err, "ids")
		}
	}
	for _, side := range s.table.sides() {
		if err := s.matched(ctx, side, subset.Missing == spec.MissingDrop); err != nil {
			return fault.WithFile(InPart(err, "tables"), side.Path)
		}
	}
	for i := range subset.Where {
		if err := s.where(ctx, &subset.Where[i]); err != nil {
			return InPart(err, subset.Where[i].Called())
		}
		if s.clause == "" && s.none() {
			s.clause = ": no row meets " + cmp.Or(subset.Where[i].SQL, subset.Where[i].Called())
		}
	}
	if len(subset.Bad) > 0 {
		if err := s.without(ctx, subset.Bad); err != nil {
			return InPart(err, "bad")
		}
	}
	if subset.Split.OfRows() {
		if err := s.split(ctx, subset.Split, subset.Use); err != nil {
			return InPart(err, "split")
		}
	}
	return ctx.Err()
}

// without leaves out the samples with some ids: the id and the key of a sample, and the paths of all its rasters, as
// another run may have had another field first.
func (s *Selector) without(ctx context.Context, ids []string) error {
	s.init()
	bad, found := join.New(ids), make([]bool, len(ids))
	drop := func(row int64, _, name string) (enough bool) {
		i, ok := bad.Find(name)
		if ok {
			s.Keep[row], found[i] = false, true
		}
		return false
	}
	keys, _, err := s.table.keyColumn(ctx, "")
	if err == nil {
		err = s.table.called(ctx, keys, true, false, drop)
	}
	if err == nil {
		err = s.table.ScanIDs(ctx, func(row int64, id string) error {
			drop(row, id, id)
			return nil
		})
	}
	if err != nil {
		return err
	}
	var absent []string
	for i, id := range ids {
		if first, ok := bad.Find(id); ok && !found[first] {
			absent = append(absent, ids[i])
		}
	}
	if len(absent) > 0 {
		s.options.Logger.Warn("bad names samples that the dataset does not have", "ids", len(absent), "of", len(ids),
			"such as", absent[0])
	}
	return nil
}

// matched leaves out the samples that have no row in a table, or refuses them.
func (s *Selector) matched(ctx context.Context, t *side, drop bool) error {
	count, some := 0, []int(nil)
	var left []int32
	for row, from := range t.row {
		switch {
		case s.Keep != nil && !s.Keep[row]:
		case from >= 0:
			left = append(left, int32(row))
		default:
			if count++; count <= 3 {
				some = append(some, row)
			}
		}
	}
	if count == 0 {
		return nil
	}
	var names []string
	column, _, err := s.table.keyColumn(ctx, t.On)
	if err != nil {
		return err
	}
	err = column.Scan(ctx, func(row int64, v catalog.Value) error {
		if slices.Contains(some, int(row)) {
			names = append(names, v.In(column.Kind))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if drop {
		s.options.Logger.Warn("samples without a row in a table are left out", "table", t.Path, "samples", count,
			"left", len(left), "such as", fmt.Sprintf("%q", names))
		s.Meet(slices.Values(left))
		return nil
	}
	if len(left) == 0 {
		return fault.New(fault.NotFound, "column "+t.Column, "no sample has a row: they have %q like "+
			"%q, and the table has keys like %q: match by another column of the dataset, such as %s", t.On, names,
			t.example, strings.Join(catalog.PathColumns, ", "))
	}
	return fault.New(fault.NotFound, "column "+t.Column, "%d of %d samples have no row, such as those "+
		"whose %q is %q: missing \"drop\" leaves them out", count, count+len(left), t.On, names)
}

// where keeps the samples that meet a condition.
func (s *Selector) where(ctx context.Context, w *spec.Condition) error {
	switch {
	case w.Compares():
		return s.compare(ctx, w)
	case w.SQL != "":
		return s.sql(ctx, w.SQL)
	case w.Select != "":
		return s.selects(ctx, w.Select)
	case w.Concat == nil:
		return s.near(ctx, w)
	case s.levels == nil:
		return fault.New(fault.Unsupported, "where", "concat is a condition on containers")
	}
	return s.levels.Concat(ctx, s, w.Concat)
}

// compare keeps the rows that meet a comparison of a column with values.
func (s *Selector) compare(ctx context.Context, w *spec.Condition) error {
	operands, err := w.Operands()
	if err != nil {
		return err
	}
	column, err := s.table.named(ctx, w.Column)
	for i := range operands {
		if err == nil {
			err = suit(column, s.table, w.Column, &operands[i])
		}
	}
	if err != nil {
		return err
	}
	s.init()
	var had values
	err = column.Scan(ctx, func(row int64, v catalog.Value) error {
		if s.Keep[row] {
			had.add(column.Kind, v)
		}
		s.Keep[row] = s.Keep[row] && w.Meets(column.Kind, v, operands)
		if column.Kind != catalog.Text {
			return nil
		}
		return w.Dated(w.Column, v, operands)
	})
	if s.none() && s.clause == "" && had.texts != nil && column.Unit == 0 {
		s.clause = fmt.Sprintf(": no row meets the condition on %q, which has %v", w.Column, &had)
	}
	return err
}

// none reports whether all samples are dropped.
func (s *Selector) none() bool { return s.Keep != nil && !slices.Contains(s.Keep, true) }

// NoneLeft returns the error about conditions and a split that leave no sample of a source.
func (s *Selector) NoneLeft(src *spec.Source) error {
	clause := s.clause
	if clause == "" {
		clause = emptyPart(src)
	}
	return fault.New(fault.NotFound, "dataset", "none of its %d rows is selected%s", s.table.N, clause)
}

// split keeps the rows of the part named use.
func (s *Selector) split(ctx context.Context, p *spec.Split, use string) error {
	s.init()
	switch p.By {
	case "given":
		return s.keepPart(ctx, p.Column, use)
	case "date":
		return s.byDate(ctx, p, use)
	}
	split := p.Hash()
	share := slices.IndexFunc(p.Shares, func(x spec.Share) bool { return x.Name == use })
	if !p.Exact {
		return s.hashes(ctx, p, &split, func(row int64, hash uint64, ok bool) {
			s.Keep[row] = s.Keep[row] && ok && split.Of(hash) == share
		})
	}
	var all []uint64
	of := make([]uint64, s.table.N)
	err := s.hashes(ctx, p, &split, func(row int64, hash uint64, ok bool) {
		s.Keep[row] = s.Keep[row] && ok
		if of[row] = hash; ok {
			all = append(all, hash)
		}
	})
	shareOf := split.Exactly(all)
	for row, hash := range of {
		s.Keep[row] = s.Keep[row] && shareOf(hash) == share
	}
	return err
}

// hashes visits what a split divides each row by, if it has that.
func (s *Selector) hashes(ctx context.Context, p *spec.Split, split *shuffle.Split,
	visit func(row int64, hash uint64, ok bool)) error {
	switch p.By {
	case "hash":
		return s.table.Keys(ctx, func(row int64, key string) error {
			visit(row, split.HashOfText(key), true)
			return nil
		})
	case "column":
		some, named := false, true // whether all values are names of parts
		err := scan(ctx, s.table, p.Column, func(row int64, c *Column, v catalog.Value) error {
			text := v.In(c.Kind)
			visit(row, split.HashOfText(text), !v.Null)
			some = some || !v.Null
			named = named && (v.Null ||
				slices.ContainsFunc(p.Shares, func(x spec.Share) bool { return x.Name == string(text) }))
			return nil
		})
		if err == nil && some && named {
			s.options.Logger.Warn("the column of a split holds the names of its parts, and a value's hash decides its "+
				"part: by \"given\" (Split.given) takes the part that each row names", "column", p.Column)
		}
		return err
	}
	bounds, err := Bounds(ctx, s.table, p.Columns)
	if p.LonLat {
		bounds, err = s.lonLat(ctx, p, bounds, err)
	}
	err = placeless(err)
	for row, b := range bounds {
		hash, ok := split.HashOfCell(b, p.Size)
		visit(int64(row), hash, ok)
	}
	return err
}

// placeless adds the way to an error about rows whose places are not in a column.
func placeless(err error) error {
	at, ok := errors.AsType[*fault.Error](err)
	if !ok || at.Kind != fault.NotFound {
		return err
	}
	return fault.New(at.Kind, at.Part, "%s. 'chaski index' makes a catalog of rasters, with columns of their bounds",
		at.Msg)
}

// Bounds returns the four named columns of a table for all rows, with NaN for null.
func Bounds(ctx context.Context, t *Table, names []string) ([][4]float64, error) {
	bounds := make([][4]float64, t.N)
	for i, name := range names {
		if err := scanNumbers(ctx, t, name, func(row int64, v float64) { bounds[row][i] = v }); err != nil {
			return nil, err
		}
	}
	return bounds, nil
}

// lonLat returns for each row the centre of its bounds, in degrees, as a box without area. err is
// the error of reading the bounds: if the table has none, its centroids count. Rows without a
// place, and rows that were dropped before, are NaN.
func (s *Selector) lonLat(ctx context.Context, p *spec.Split, bounds [][4]float64, err error) ([][4]float64, error) {
	nowhere := [4]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	if store, ok := s.table.base.(centred); ok && fault.KindOf(err) == fault.NotFound {
		bounds = make([][4]float64, s.table.N)
		return bounds, store.Centroids(ctx, func(row int64, x, y float64) error {
			bounds[row] = nowhere
			if lon, lat, ok, err := lonlat.At(4326, x, y); ok && err == nil {
				bounds[row] = [4]float64{lon, lat, lon, lat}
			}
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	return bounds, scan(ctx, s.table, p.CRS, func(row int64, c *Column, v catalog.Value) error {
		box := bounds[row]
		bounds[row] = nowhere
		switch {
		case c.Kind != catalog.Int:
			return fault.New(fault.Unsupported, "column "+p.CRS, "holds %ss, not EPSG codes", c.Kind)
		case v.Null || !s.Keep[row]:
			// A row that was dropped must not fail the run by an unknown CRS: a condition before
			// the split is how users leave such rows out.
			return nil
		}
		// The conversions to float64 prevent fused multiply-adds, since a split must have the same
		// bits on every machine.
		lon, lat, ok, err := lonlat.At(v.Int, float64((box[0]+box[2])*0.5), float64((box[1]+box[3])*0.5))
		if err != nil {
			return fault.New(fault.Unsupported, fmt.Sprintf("column %s of row %d", p.CRS, row), "%v", err)
		}
		if ok {
			bounds[row] = [4]float64{lon, lat, lon, lat}
		}
		return nil
	})
}

// keepPart keeps the rows that a column assigns to the part named use. Without a column it takes the
// first of spec.SplitColumns that exists. A part without rows is fault.NotFound and lists the parts
// that there are.
func (s *Selector) keepPart(ctx context.Context, column, use string) error {
	names := spec.SplitColumns
	if column != "" {
		names = []string{column}
	}
	var first error
	for _, name := range names {
		var parts values
		found := false
		err := scan(ctx, s.table, name, func(row int64, c *Column, v catalog.Value) error {
			if s.Keep[row] = s.Keep[row] && !v.Null; s.Keep[row] {
				parts.add(c.Kind, v)
			}
			s.Keep[row] = s.Keep[row] && v.In(c.Kind) == use
			found = found || s.Keep[row]
			return nil
		})
		if err == nil && s.table.N > 0 && !found {
			return fault.New(fault.NotFound, "column "+name, "no row is of the part %q; there are %v", use, &parts)
		}
		if fault.KindOf(err) != fault.NotFound {
			return err
		}
		// The error of the first column is shown, because it is the name that is tried first.
		first = cmp.Or(first, err)
	}
	return first
}

// byDate keeps the rows whose value lies in the range of the part named use. A range has its start
// but not its end; the first range that contains a value counts. If all bounds are times, so are the texts of a column,
// and numbers without a unit, such as 20240105.
func (s *Selector) byDate(ctx context.Context, p *spec.Split, use string) error {
	column, err := s.table.named(ctx, p.Column)
	if err != nil {
		return err
	}
	ranges, times := p.Ranges, false
	numbers := column.Kind == catalog.Int && column.Unit == 0
	if column.Kind == catalog.Text || numbers {
		if ranges, times = inTimes(ranges); times {
			dated := *column
			column, dated.Kind = &dated, catalog.Int
		}
	}
	parts := make([][2]*spec.Operand, len(ranges)) // from, to
	for i, r := range ranges {
		for bound, raw := range []json.RawMessage{r.From, r.To} {
			if len(raw) == 0 {
				continue
			}
			operand, err := spec.OperandOf(raw)
			if err == nil {
				err = suit(column, s.table, p.Column, &operand)
			}
			if err != nil {
				return err
			}
			parts[i][bound] = &operand
		}
	}
	return column.Scan(ctx, func(row int64, v catalog.Value) error {
		if times && numbers && !v.Null {
			v.Text = strconv.AppendInt(nil, v.Int, 10)
		}
		if times && len(v.Text) == 0 {
			v.Null = true
		} else if times {
			at, err := timeOf(string(v.Text))
			if err != nil {
				return fault.New(fault.Unsupported, fmt.Sprintf("column %s, row %d", p.Column, row),
					"%v, and the ranges of the split are times", err)
			}
			v.Int = at
		}
		part := ""
		for i, bounds := range parts {
			inside := !v.Null
			for bound, operand := range bounds {
				if operand == nil {
					continue
				}
				c, ordered := operand.Compare(column.Kind, v)
				inside = inside && ordered && (c >= 0) == (bound == 0)
			}
			if inside {
				part = p.Ranges[i].Name
				break
			}
		}
		s.Keep[row] = s.Keep[row] && part == use
		return nil
	})
}

// inTimes returns ranges in microseconds since 1970 UTC, if all bounds are texts that are times.
func inTimes(ranges []spec.Range) (out []spec.Range, ok bool) {
	out = slices.Clone(ranges)
	for i := range out {
		for _, bound := range []*json.RawMessage{&out[i].From, &out[i].To} {
			if len(*bound) == 0 {
				continue
			}
			var text string
			if json.Unmarshal(*bound, &text) != nil {
				return ranges, false
			}
			at, err := timeOf(text)
			if err != nil {
				return ranges, false
			}
			*bound = strconv.AppendInt(nil, at, 10)
		}
	}
	return out, true
}

// selected returns a selector of the rows that meet the conditions and the split of a subset.
func selected(ctx context.Context, t *Table, s *spec.Subset, o resources.Options) (*Selector, error) {
	sel := NewSelector(t, nil, o)
	if t.Selected { // a container applies its subset when it is opened
		return sel, nil
	}
	return sel, sel.Apply(ctx, s)
}

// emptyPart says which part of a split has no rows, and the shares of all: a clause, or "" without a split by shares.
func emptyPart(src *spec.Source) string {
	split := src.Split
	if !split.OfRows() || len(split.Shares) == 0 {
		return ""
	}
	clause := fmt.Sprintf(": the part %q has none of them; the shares are", src.Use)
	for _, share := range split.Shares {
		clause += fmt.Sprintf(" %s %.3g", share.Name, float64(share.Parts)/(1<<32))
	}
	if !split.Exact {
		clause += "; exact=True keeps them among few"
	}
	return clause
}

// Selected returns the rows that meet the conditions and the split of a source, ascending; nil for
// all. No row left is fault.NotFound.
func Selected(ctx context.Context, t *Table, src spec.Source, o resources.Options) (shuffle.Rows, error) {
	first := t
	if t.Joined != nil {
		first = t.Joined.tables[0]
	}
	sel, err := selected(ctx, first, &src.Subset, o)
	if err != nil {
		return nil, fault.WithFile(err, src.Source)
	}
	rows, err := sel.rows()
	if err == nil && rows != nil && t.Joined != nil {
		rows, err = t.Joined.withOthers(rows)
	}
	if err == nil && rows != nil && len(rows) == 0 {
		err = sel.NoneLeft(&src)
	}
	return rows, fault.WithFile(err, src.Source)
}

// withOthers returns rows of the first dataset, and all rows of the others.
func (j *Joined) withOthers(rows []uint32) ([]uint32, error) {
	if j.begins[len(j.tables)] > math.MaxUint32 {
		return nil, fault.New(fault.Limit, "dataset", "%d rows: conditions take at most 2^32-1",
			j.begins[len(j.tables)])
	}
	for row := j.begins[1]; row < j.begins[len(j.tables)]; row++ {
		rows = append(rows, uint32(row))
	}
	return rows, nil
}

// rows returns the rows that are left, ascending; nil for all.
func (s *Selector) rows() ([]uint32, error) {
	if s.Keep == nil {
		return nil, nil
	}
	// Row numbers are uint32, which takes half the memory of int.
	if int64(len(s.Keep)) > math.MaxUint32 {
		return nil, fault.New(fault.Limit, "dataset", "%d rows: conditions and splits take at most 2^32-1", len(s.Keep))
	}
	// An empty list is not nil, since nil would mean all.
	rows := []uint32{}
	for i, k := range s.Keep {
		if k {
			rows = append(rows, uint32(i))
		}
	}
	return rows, nil
}

// StrataOf groups rows (nil for all) by their value in a column. Rows with null are left out. A
// column that does not exist is fault.NotFound.
func StrataOf(ctx context.Context, t *Table, column string, rows []uint32) ([]shuffle.Stratum[string], error) {
	keys, present, ints, err := keysOf(ctx, t, column)
	if err != nil {
		return nil, err
	}
	groups := shuffle.Strata(keys, pick(rows, present))
	// Strata of integers are in numerical order, in which "10" follows "9". The order decides what
	// is drawn, so it must not change.
	if ints {
		slices.SortFunc(groups, func(a, b shuffle.Stratum[string]) int {
			x, _ := strconv.ParseInt(a.Key, 10, 64)
			y, _ := strconv.ParseInt(b.Key, 10, 64)
			return cmp.Compare(x, y)
		})
	}
	return groups, nil
}

// keysOf returns the values of a column as strings, and which rows are not null. ints reports
// whether the column holds integers.
func keysOf(ctx context.Context, t *Table, column string) (keys []string, present []bool, ints bool, err error) {
	keys, present = make([]string, t.N), make([]bool, t.N)
	// A column of keys has few distinct values in many rows, so equal strings share their memory.
	seen := map[string]string{}
	err = scan(ctx, t, column, func(row int64, c *Column, v catalog.Value) error {
		ints = c.Kind == catalog.Int
		text := v.In(c.Kind)
		if s, ok := seen[text]; ok {
			text = s
		} else {
			seen[text] = text
		}
		keys[row], present[row] = text, !v.Null
		return nil
	})
	return keys, present, ints, err
}

// GroupsOf returns a number for each row that is the same where the values of a column are, or the days of a column of
// times. Rows without a value have -1. A column that is missing, or holds other values than times, is fault.NotFound.
func GroupsOf(ctx context.Context, t *Table, column string, days bool) ([]int64, error) {
	if days {
		const day int64 = 24 * 60 * 60 * 1e6 // microseconds
		groups, err := Times(ctx, t, []string{column})
		if groups == nil && err == nil {
			err = fault.New(fault.NotFound, "column "+column, "it is not there, or holds no times")
		}
		for i, group := range groups {
			if groups[i] = -1; group != NoTime {
				groups[i] = group/day + 1<<40 // no day is then negative
				if group%day < 0 {
					groups[i]--
				}
			}
		}
		return groups, err
	}
	keys, present, _, err := keysOf(ctx, t, column)
	if err != nil {
		return nil, err
	}
	groups, seen := make([]int64, len(keys)), map[string]int64{}
	for i, key := range keys {
		if groups[i] = -1; !present[i] {
			continue
		}
		number, ok := seen[key]
		if !ok {
			number = int64(len(seen))
			seen[key] = number
		}
		groups[i] = number
	}
	return groups, nil
}

// pick returns the rows (nil for all) for which present is true.
func pick(rows shuffle.Rows, present []bool) []uint32 {
	out := []uint32{}
	for i := range rows.Len(int64(len(present))) {
		if row := rows.At(i); present[row] {
			out = append(out, uint32(row))
		}
	}
	return out
}

// SeriesOf returns the sequences of a dataset: rows (nil for all) with the same key, or all of them without one, in
// order of time. Rows without a key or a time are left out. Text that is no time is fault.Unsupported, and more
// rows than uint32 can number are fault.Limit.
func SeriesOf(ctx context.Context, t *Table, w *spec.Time, rows []uint32) (*shuffle.Series, error) {
	if t.N > math.MaxUint32 {
		return nil, fault.New(fault.Limit, "dataset", "%d rows, too many for sequences", t.N)
	}
	keys, present := make([]string, t.N), slices.Repeat([]bool{true}, int(t.N)) // all rows are one series
	var err error
	if w.Key != "" {
		if keys, present, _, err = keysOf(ctx, t, w.Key); err != nil {
			return nil, err
		}
	}
	times, timed, err := Ranks(ctx, t, w.Order)
	if err != nil {
		return nil, err
	}
	for i := range present {
		present[i] = present[i] && timed[i]
	}
	return shuffle.NewSeries(keys, times, pick(rows, present), w.Length, w.Stride, w.Cut)
}

// Ranks returns for each row a number that orders it as the value of a column does, and which rows have a value. NaN is
// none. Strings are ordered by their time: two of them may be in other zones, or one of them without the fraction of a
// second. One that is no time is fault.Unsupported.
func Ranks(ctx context.Context, t *Table, column string) (ranks []int64, present []bool, err error) {
	ranks, present = make([]int64, t.N), make([]bool, t.N)
	isInt := false
	err = scan(ctx, t, column, func(row int64, c *Column, v catalog.Value) (err error) {
		present[row] = !v.Null
		switch {
		case c.Kind == catalog.Int:
			ranks[row] = v.Int
		case c.Kind == catalog.Float:
			present[row] = present[row] && !math.IsNaN(v.Float)
			ranks[row] = ordered(v.Float)
		case !v.Null:
			if ranks[row], err = timeOf(string(v.Text)); err != nil {
				return fault.Wrap(fault.Unsupported, fmt.Sprintf("column %s, row %d", column, row), err)
			}
		}
		isInt = c.Kind == catalog.Int && c.Unit == 0
		return nil
	})
	if err == nil && isInt {
		err = yearsLast(column, ranks, present)
	}
	return ranks, present, err
}

// yearsLast refuses the numbers of a column if all are days, months and years such as 30012024: as numbers they are in
// another order than in time. Numbers of the form 20240130 are in both.
func yearsLast(column string, numbers []int64, present []bool) error {
	first, last := int64(-1), int64(-1)
	for row, n := range numbers {
		if !present[row] {
			continue
		}
		day, month, year := n/1_000_000, n/10_000%100, n%10_000
		low, high := min(day, month), max(day, month)
		isDate := low >= 1 && low <= 12 && high <= 31 && year >= 1900 && year < 2100
		if century := n / 1_000_000; !isDate || (century == 19 || century == 20) && n/100%100 <= 12 {
			return nil
		}
		if last = n; first < 0 {
			first = n
		}
	}
	if first == last {
		return nil
	}
	return fault.New(fault.Unsupported, "column "+column, "%08d and %08d look like days, months and "+
		"years, which as numbers are not in the order of time: write 2024-01-30, or 20240130", first, last)
}

// ordered returns an integer that compares like the float does.
func ordered(f float64) int64 {
	// -0 + 0 is 0, so both zeros are equal.
	bits := int64(math.Float64bits(f + 0))
	// The bits of positive floats ascend with them. The bits of negative floats descend, so all bits
	// but the sign are inverted.
	if bits < 0 {
		bits ^= math.MaxInt64
	}
	return bits
}
