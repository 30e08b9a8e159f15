package rows

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
)

// where drops the samples that do not meet a condition.
func (c *Container) where(ctx context.Context, w *spec.Condition) error {
	switch {
	case w.Compares():
		return c.narrow(ctx, func(s *selector) error { return s.where(ctx, *w) })
	case w.SQL != "":
		return c.sql(ctx, w.SQL)
	case w.Select != "":
		return c.query(ctx, w.Select)
	case w.Concat != nil:
		return c.concat(ctx, w.Concat)
	}
	f, err := w.Filter()
	if err != nil {
		return err
	}
	left, err := c.filter(ctx, f)
	if err != nil || left == nil {
		return err
	}
	c.intersect(left[0])
	return c.narrowBelow(ctx, left)
}

// narrowBelow drops what a condition did not leave of the levels below 0.
func (c *Container) narrowBelow(ctx context.Context, left taco.Selection) (err error) {
	if len(left) < 2 {
		return nil
	}
	if c.left == nil {
		c.left = left
		return nil
	}
	c.left, err = c.set.And(ctx, c.left, left)
	return err
}

// sql keeps the samples that meet a condition on the columns of data.
func (c *Container) sql(ctx context.Context, condition string) error {
	if c.data == nil {
		rows, err := c.options.Where(ctx, c.level0, condition)
		if err == nil {
			c.intersect(rows)
		}
		return err
	}
	rows, err := c.options.Where(ctx, c.data, condition)
	if err != nil {
		return err
	}
	c.data = c.data.Take(rows)
	at := make([]int32, len(rows))
	for i, row := range rows {
		at[i] = c.at[row]
	}
	c.at = at
	c.rows = distinct(at)
	return nil
}

// distinct returns rows in order, each once.
func distinct(rows []int32) []int32 {
	out := slices.Clone(rows)
	slices.Sort(out)
	return slices.Compact(out)
}

// filter returns the rows that match. Where level 0 has neither place nor time, and no column
// is named, it looks at the first level that has.
func (c *Container) filter(ctx context.Context, f taco.Filter) (taco.Selection, error) {
	f.Keep = c.keep
	left, first := c.set.Select(ctx, f)
	if f.Level != 0 || f.Geometry != "" || f.Time != "" || fault.KindOf(first) != fault.NotFound {
		return left, first
	}
	for f.Level = 1; ; f.Level++ {
		if _, err := c.set.Level(ctx, f.Level); err != nil {
			return nil, first
		}
		left, err := c.set.Select(ctx, f)
		if fault.KindOf(err) != fault.NotFound {
			return left, err
		}
	}
}

// table returns what a query sees as data, and the row of level 0 of each of its rows.
func (c *Container) table() (*tables.Table, []int32) {
	switch {
	case c.data != nil:
		return c.data, c.at
	case c.level0 == nil:
		return tables.FromVectors(nil, nil), nil
	case len(c.rows) == c.level0.Len():
		return c.level0, c.rows
	}
	rows := ints(c.rows)
	return c.level0.Take(rows), c.rows
}

// query keeps the samples that the result of a SELECT has the rows or else the ids of. Conditions that
// follow see the result as data.
func (c *Container) query(ctx context.Context, sql string) error {
	data, at := c.table()
	numbers := make([]int64, len(at))
	for i, row := range at {
		numbers[i] = int64(row)
	}
	data = resources.WithRows(data, numbers)
	t, err := c.options.Query(ctx, sql, c.set.SQLTables(), func(ctx context.Context, name string) (*tables.Table, error) {
		return c.sqlTable(ctx, name, data)
	})
	if err != nil {
		return err
	}
	if c.at, err = c.rowsOf(ctx, t); err != nil {
		return err
	}
	c.data, c.rows = t.Without(resources.RowColumn), distinct(c.at)
	return nil
}

// rowsOf returns the rows of level 0 that the rows of a query's result are of, which must be among those
// that were left.
func (c *Container) rowsOf(ctx context.Context, t *tables.Table) ([]int32, error) {
	at := make([]int32, t.Len())
	if t.Index(resources.RowColumn) >= 0 {
		rows, err := resources.RowNumbers(ctx, t, func(row int64) bool {
			_, ok := slices.BinarySearch(c.rows, int32(row))
			return ok && row == int64(int32(row))
		})
		for i, row := range rows {
			at[i] = int32(row)
		}
		return at, err
	}
	name := c.set.IDColumn()
	if t.Index(name) < 0 {
		return nil, fault.New(fault.Unsupported, "select", fault.NoOffset, "its result has no column %q to tell samples by", name)
	}
	v, err := t.Column(ctx, name)
	if err != nil {
		return nil, err
	}
	if v.Kind() != tables.Text {
		return nil, fault.New(fault.Unsupported, "select", fault.NoOffset, "the column %q of its result has type %v, not text", name, v.Type())
	}
	ids, err := c.ids(ctx)
	if err != nil {
		return nil, err
	}
	rows := make(map[string]int32, len(c.rows))
	for _, row := range c.rows {
		id := ids.Text(int(row))
		if _, twice := rows[id]; twice {
			row = -1
		}
		rows[id] = row
	}
	for i := range at {
		row, ok := rows[v.Text(i)]
		if !ok || v.Null(i) {
			return nil, fault.New(fault.Unsupported, "select", fault.NoOffset, "row %d of its result has no id of a sample", i)
		}
		if row < 0 {
			return nil, fault.New(fault.Unsupported, "select", fault.NoOffset, "several samples have the id %q: select the column %q too", v.Text(i), resources.RowColumn)
		}
		at[i] = row
	}
	return at, nil
}

// Samples are the samples of a container that a subset leaves.
type Samples struct {
	// Data is the table of level 0 or, after a condition with a SELECT, its result.
	Data *tables.Table
	// Rows are the rows of level 0 that the rows of Data are of.
	Rows []int32

	c *Container
}

// SQLTable returns a table that queries see: data is Data, and all others are as taco.Dataset.SQLTable has them; where the
// conditions join groups of containers, without what does not lie below the samples that those left.
func (s *Samples) SQLTable(ctx context.Context, name string) (*tables.Table, error) {
	return s.c.sqlTable(ctx, name, s.Data)
}

// Below returns the rows of a level, in order, that lie below the samples: of the levels that conditions on place and time
// looked at, and of those above them, only what met all of these. Placeholders are left out.
func (s *Samples) Below(ctx context.Context, level int) ([]int, error) {
	visible, err := s.c.set.Visible(ctx, level)
	if err != nil {
		return nil, err
	}
	left := append(taco.Selection{ints(s.c.rows)}, s.c.left[min(1, len(s.c.left)):]...)
	rows, err := s.c.set.RowsBelow(ctx, left, level)
	if err != nil || len(rows) == len(visible) {
		return rows, err
	}
	return slices.DeleteFunc(rows, func(row int) bool {
		_, ok := slices.BinarySearch(visible, row)
		return !ok
	}), nil
}

// SelectSamples applies a subset's conditions and split to the samples of level 0 of a dataset, which
// must stay open as long as the result is used. Of the options, SQL counts.
func SelectSamples(ctx context.Context, set *taco.Dataset, s spec.Subset, o resources.Options) (*Samples, error) {
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		return nil, err
	}
	src := &spec.Source{Subset: s}
	if parts := set.Parts(); len(parts) > 0 {
		src.Source = parts[0]
	}
	c := &Container{set: set, src: src, options: o, keep: true}
	if err := c.selectSamples(ctx); err != nil {
		return nil, fault.WithFile(err, src.Source)
	}
	out := &Samples{c: c}
	out.Data, out.Rows = c.table()
	var err error
	if c.level0 == nil { // of no rows, but with their columns
		out.Data, err = c.columnsAlone(ctx)
	}
	return out, err
}

// member resolves a field.
func (c *Container) member(ctx context.Context, f spec.Field) (member, error) {
	if f.Pattern != "" {
		return member{}, fault.New(fault.Unsupported, "", fault.NoOffset, "patterns pair the files of folders and catalogs; a container has paths of ids")
	}
	if name := cmp.Or(f.Column, f.Name); c.level0.Index(name) >= 0 && f.Blob == "" {
		m, err := c.valueMember(ctx, name)
		m.name = f.Name
		return m, err
	}
	if f.Column == "" {
		return c.ownMember(ctx, f)
	}
	level, rows, err := c.below(ctx, f.Column)
	if err == nil {
		return c.raster(ctx, f, level, rows)
	}
	if strings.Contains(f.Column, "@") {
		m, verr := c.valueMember(ctx, f.Column)
		m.name = f.Name
		return m, verr
	}
	return member{}, err
}

// ownMember resolves a field that says no place and is no column: the sample itself if it is a file, else
// what lies below it under the field's name.
func (c *Container) ownMember(ctx context.Context, f spec.Field) (member, error) {
	e, err := c.set.Entry(ctx, 0, int(c.rows[0]))
	if err != nil {
		return member{}, err
	}
	if e.Kind == taco.File {
		return c.raster(ctx, f, 0, c.rows)
	}
	level, rows, err := c.below(ctx, f.Name)
	if err != nil {
		return member{}, err
	}
	return c.raster(ctx, f, level, rows)
}

// blobColumns are the columns in which a table may hold the indexes of its rasters.
var blobColumns = []string{"chaski:index", "rumi:header"}

// raster makes the member of rasters in rows of a level.
func (c *Container) raster(ctx context.Context, f spec.Field, level int, rows []int32) (member, error) {
	m := member{name: f.Name, kind: catalog.Raster, level: level, rows: rows}
	t, err := c.set.Level(ctx, level)
	if err != nil {
		return m, err
	}
	names := blobColumns
	if f.Blob != "" {
		names = []string{f.Blob}
	}
	for _, name := range names {
		i := t.Index(name)
		if i < 0 && f.Blob == "" {
			continue
		}
		v, err := t.Column(ctx, name)
		if err != nil {
			return m, err
		}
		if v.Kind() == tables.Binary {
			m.blobs = append(m.blobs, v)
		} else if f.Blob != "" {
			return m, fault.New(fault.Unsupported, "column "+name, fault.NoOffset, "holds values of type %v, not blobs", v.Type())
		}
	}
	return m, nil
}

// valueMember resolves a column of level 0, or "PATH@COLUMN".
func (c *Container) valueMember(ctx context.Context, name string) (member, error) {
	if c.level0 == nil {
		return member{}, fault.New(fault.NotFound, "dataset", fault.NoOffset, "no samples")
	}
	if c.level0.Index(name) >= 0 {
		return c.column(ctx, 0, c.rows, name)
	}
	for at := strings.IndexByte(name, '@'); at > 0; {
		level, rows, err := c.below(ctx, name[:at])
		if err == nil {
			return c.column(ctx, level, rows, name[at+1:])
		}
		next := strings.IndexByte(name[at+1:], '@')
		if next < 0 {
			return member{}, err
		}
		at += 1 + next
	}
	return member{}, c.level0.NoColumn(name)
}

// column makes the member of a column of a level.
func (c *Container) column(ctx context.Context, level int, rows []int32, name string) (member, error) {
	m := member{level: level, rows: rows}
	t, err := c.set.Level(ctx, level)
	if err != nil {
		return m, err
	}
	if m.value, err = t.Column(ctx, name); err != nil {
		return m, err
	}
	m.kind, err = kindOf(name, m.value.Type())
	return m, err
}

// below returns the rows that a path leads to from every sample, and their level; -1 for a sample that has
// none. A path that leads nowhere from any is fault.NotFound.
func (c *Container) below(ctx context.Context, path string) (int, []int32, error) {
	walk := descent{path: path, found: make([]int32, len(c.rows))}
	for i := range walk.found {
		walk.found[i] = -1
	}
	t0 := c.level0.Len()
	walk.sample, walk.rest = make([]int32, t0), make([]int32, t0)
	for i := range walk.sample {
		walk.sample[i] = -1
	}
	for i, row := range c.rows {
		walk.sample[row] = int32(i)
	}
	for k := 1; ; k++ {
		t, err := c.set.Level(ctx, k)
		if fault.KindOf(err) == fault.NotFound {
			break
		}
		if err != nil {
			return 0, nil, err
		}
		ids, err := t.Column(ctx, c.set.IDColumn())
		if err != nil {
			return 0, nil, err
		}
		if ids.Kind() != tables.Text {
			return 0, nil, fault.New(fault.Corrupt, fmt.Sprintf("level%d column %s", k, c.set.IDColumn()), fault.NoOffset, "has type %v, want text", ids.Type())
		}
		parents, err := c.set.Parents(ctx, k)
		if err != nil {
			return 0, nil, err
		}
		if !walk.down(k, ids, parents) {
			break
		}
	}
	if walk.level > 0 {
		return walk.level, walk.found, nil
	}
	// Who asks for one sample is told what there is.
	first, err := c.set.Entry(ctx, 0, int(c.rows[0]))
	if err == nil && first.Kind == taco.File {
		err = fault.New(fault.NotFound, "sample "+first.Path, fault.NoOffset, "is a file: nothing lies below it, and there is no column %q either", path)
	} else if err == nil {
		if _, err = c.set.Below(ctx, first, path); err == nil {
			err = fault.New(fault.NotFound, "sample "+first.Path, fault.NoOffset, "no path %q", path)
		}
	}
	return 0, nil, err
}

// descent follows one path from many samples at once, a level at a time.
type descent struct {
	path  string
	level int     // of what was found
	found []int32 // rows of that level by sample

	sample []int32 // by row of the level above: the sample that it lies below, if it is on the path
	rest   []int32 // what is left of the path there
}

// down goes to level k, and reports whether the path goes on from there.
func (d *descent) down(k int, ids *tables.Vector, parents []int32) bool {
	sample, rest := make([]int32, ids.Len()), make([]int32, ids.Len())
	on := false
	for i := range sample {
		sample[i] = -1
		p := parents[i]
		s := d.sample[p]
		if s < 0 {
			continue
		}
		want, id := d.path[d.rest[p]:], ids.Bytes(i)
		if len(id) == 0 || len(id) > len(want) || want[:len(id)] != string(id) {
			continue
		}
		switch {
		case len(id) == len(want):
			if d.level == 0 {
				d.level = k
			}
			if d.level == k && d.found[s] < 0 {
				d.found[s] = int32(i)
			}
		case want[len(id)] == '/':
			sample[i], rest[i], on = s, d.rest[p]+int32(len(id))+1, true
		}
	}
	d.sample, d.rest = sample, rest
	return on
}
