package containers

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Near implements rows.Levels: it returns the rows of level 0 that match a condition on place or time. It keeps those
// rows of the levels below 0 that the condition leaves.
func (c *Container) Near(ctx context.Context, f spacetime.Filter) ([]int, error) {
	left, err := c.filter(ctx, f)
	if err != nil {
		return nil, err
	}
	switch {
	case len(left) < 2: // the condition looked at level 0 only
	case c.matches == nil:
		c.matches = left
	default:
		c.matches, err = c.set.And(ctx, c.matches, left)
	}
	return left[0], err
}

// filter returns the rows that match a condition on place or time. If the condition names neither a
// level nor a column, and level 0 has no column of places or times, the first level that has one
// decides.
func (c *Container) filter(ctx context.Context, f spacetime.Filter) (store.Selection, error) {
	f.Keep = c.keep
	left, first := c.set.Select(ctx, f)
	if f.Level != 0 || f.Geometry != "" || f.Time != "" || fault.KindOf(first) != fault.NotFound {
		return left, first
	}
	for f.Level = 1; ; f.Level++ {
		// No deeper level has such a column either. The error of level 0 is returned, because the
		// user's filter is about the samples. Select returns all other errors of a level, too.
		if _, err := c.set.Level(ctx, f.Level); fault.KindOf(err) == fault.NotFound {
			return nil, first
		}
		left, err := c.set.Select(ctx, f)
		if fault.KindOf(err) != fault.NotFound {
			return left, err
		}
	}
}

// Samples are the samples of a container that meet the conditions and the split of a subset.
type Samples struct {
	// Data has the rows of level 0 that remain or, after a condition with a SELECT, its result.
	Data *tables.Table
	// Rows has the row of level 0 for each row of Data.
	Rows []int32

	c *Container
}

// SQLTable returns the table that queries know by name: Data for "data" and "level0", else the table of
// taco.Dataset.SQLTable. After a concat the tables of lower levels have only the rows below the
// joined samples.
func (s *Samples) SQLTable(ctx context.Context, name string) (*tables.Table, error) {
	if rows.IsData(name) {
		return s.Data, nil
	}
	return s.c.SQLTable(ctx, name)
}

// Below returns the rows of a level that lie below the samples, ascending and without padding. On
// the levels that conditions on place and time looked at, and on those above, it returns only rows
// that meet all of these conditions.
func (s *Samples) Below(ctx context.Context, level int) ([]int, error) {
	visible, err := s.c.set.Visible(ctx, level)
	if err != nil {
		return nil, err
	}
	// c.matches[0] is as old as the last condition on place or time, while c.rows has met all
	// conditions.
	left := append(store.Selection{num.As[int](s.c.rows)}, s.c.matches[min(1, len(s.c.matches)):]...)
	rows, err := s.c.set.RowsBelow(ctx, left, level)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(rows, func(row int) bool {
		_, ok := slices.BinarySearch(visible, row)
		return !ok
	}), nil
}

// Samples applies the conditions and the split of a subset to the samples of level 0. The set must stay open while the
// result is used. It uses only the option SQL. An invalid subset, and a condition that the set cannot answer, is an
// error.
func (s Set) Samples(ctx context.Context, sub spec.Subset, o resources.Options) (*Samples, error) {
	sub = sub.WithDefaults()
	if err := sub.Validate(); err != nil {
		return nil, err
	}
	src := &spec.Source{Subset: sub}
	if parts := s.Parts(); len(parts) > 0 {
		src.Source = parts[0]
	}
	container := &Container{set: s, src: src, options: o, keep: true}
	out := &Samples{c: container}
	var err error
	if out.Data, out.Rows, err = container.selectSamples(ctx); err != nil {
		return nil, fault.WithFile(err, src.Source)
	}
	return out, nil
}

// member finds the values or rasters of a field: a column of level 0 first, then a path below the
// samples, then "PATH@COLUMN".
func (c *Container) member(ctx context.Context, f spec.Field) (fieldPlace, error) {
	if f.Pattern != "" {
		return fieldPlace{}, fault.New(fault.Unsupported, "",
			"patterns pair the files of directories and catalogs; name rasters of a container by their path of ids")
	}
	if name := cmp.Or(f.Column, f.Name); c.level0.Index(name) >= 0 && f.Blob == "" {
		value, err := c.valueMember(ctx, name)
		value.name = f.Name
		return value, err
	}
	if !f.Traits().Metadata {
		if member, err := c.sequenceMember(ctx, f); err != nil || member.files != nil {
			return member, err
		}
	}
	if f.Column == "" {
		return c.ownMember(ctx, f)
	}
	level, rows, err := c.below(ctx, c.set.FileNamed(f.Column))
	if err == nil {
		return c.raster(ctx, f, level, rows)
	}
	// A path comes first, since ids may contain "@".
	if strings.Contains(f.Column, "@") {
		m, verr := c.valueMember(ctx, f.Column)
		m.name = f.Name
		return m, verr
	}
	return fieldPlace{}, err
}

// sequenceMember makes the member of a field that means a sequence of files, whose files is nil for any other field.
func (c *Container) sequenceMember(ctx context.Context, f spec.Field) (fieldPlace, error) {
	name := cmp.Or(f.Column, f.Name)
	files, err := c.set.Sequence(ctx, name)
	if err != nil || files == nil {
		return fieldPlace{}, err
	}
	sequence, err := newSequence(name, files, f.Times)
	if err != nil {
		return fieldPlace{}, err
	}
	m, err := c.raster(ctx, f, sequence.level, nil)
	m.files = sequence
	return m, err
}

// ownMember finds a field that neither names a column nor is called like one: the sample itself if it is a file,
// else the raster below the sample with the name of the field. The first sample decides for all.
func (c *Container) ownMember(ctx context.Context, f spec.Field) (fieldPlace, error) {
	e, err := c.set.Entry(ctx, 0, int(c.rows[0]))
	if err != nil {
		return fieldPlace{}, err
	}
	if !e.Folder {
		return c.raster(ctx, f, 0, c.rows)
	}
	level, rows, err := c.below(ctx, c.set.FileNamed(f.Name))
	if err != nil {
		return fieldPlace{}, err
	}
	return c.raster(ctx, f, level, rows)
}

// raster makes the member of the rasters in some rows of a level, with the columns of their headers.
func (c *Container) raster(ctx context.Context, f spec.Field, level int, rows []int32) (fieldPlace, error) {
	made := fieldPlace{name: f.Name, kind: catalog.Raster, level: level, rows: rows, axes: f.Axes()}
	table, err := c.set.Level(ctx, level)
	if err != nil || f.Axes() != (chunk.Axes{}) { // headers there are of what files say alone
		return made, err
	}
	if made.header, err = c.set.Headers(ctx, level, f.Blob); made.header == nil {
		return made, err
	}
	made.ground, err = c.groundOf(ctx, level, table)
	return made, err
}

// valueMember finds a metadata column: one of level 0, or "PATH@COLUMN".
func (c *Container) valueMember(ctx context.Context, name string) (fieldPlace, error) {
	if c.level0.Index(name) >= 0 {
		return c.column(ctx, 0, c.rows, name)
	}
	// Ids and names of columns may contain "@", so each "@" is tried, from the first on.
	for cut := strings.IndexByte(name, '@'); cut > 0; {
		level, rows, err := c.below(ctx, name[:cut])
		if err == nil {
			return c.column(ctx, level, rows, name[cut+1:])
		}
		next := strings.IndexByte(name[cut+1:], '@')
		if next < 0 {
			return fieldPlace{}, err
		}
		cut += 1 + next
	}
	return fieldPlace{}, c.level0.NoColumn(name)
}

// column makes the member of a column of a level.
func (c *Container) column(ctx context.Context, level int, rows []int32, name string) (fieldPlace, error) {
	made := fieldPlace{level: level, rows: rows}
	table, err := c.set.Level(ctx, level)
	if err != nil {
		return made, err
	}
	values, err := table.Column(ctx, name)
	if err != nil {
		return made, err
	}
	if made.value, err = values.Column(name); err == nil {
		made.kind = made.value.Kind
	}
	return made, err
}

// below follows a path of ids from each sample. It returns the level that the path leads to, and
// the row there for each sample, -1 if a sample has none. A path that leads nowhere from all
// samples is fault.NotFound.
func (c *Container) below(ctx context.Context, path string) (int, []int32, error) {
	walk := descent{path: path, rows: make([]int32, len(c.rows))}
	for i := range walk.rows {
		walk.rows[i] = -1
	}
	t0 := c.level0.Len()
	walk.sample, walk.rest = make([]int32, t0), make([]int32, t0)
	for i := range walk.sample {
		walk.sample[i] = -1
	}
	for i, row := range c.rows {
		walk.sample[row] = int32(i)
	}
	for depth := 1; ; depth++ {
		ids, err := c.set.IDs(ctx, depth)
		if fault.KindOf(err) == fault.NotFound {
			break
		}
		var parents []int32
		if err == nil {
			parents, err = c.set.Parents(ctx, depth)
		}
		if err != nil {
			return 0, nil, err
		}
		if !walk.down(depth, ids, parents) {
			break
		}
	}
	if walk.level > 0 {
		return walk.level, walk.rows, nil
	}
	// The error of the first sample lists its paths, which is more helpful than "no path".
	first, err := c.set.Entry(ctx, 0, int(c.rows[0]))
	if err == nil && !first.Folder {
		err = fault.New(fault.NotFound, "sample "+first.Path,
			"is a file: nothing lies below it, and there is no column %q either", path)
	} else if err == nil {
		if _, err = c.set.Below(ctx, first, path); err == nil {
			err = fault.New(fault.NotFound, "sample "+first.Path, "no path %q", path)
		}
	}
	return 0, nil, err
}

// descent follows one path from all samples at once, level by level, so each table of a level
// is read once.
type descent struct {
	path  string
	level int     // the level that the path leads to; 0 until it is found
	rows  []int32 // the row of that level for each sample; -1 without

	// For each row of the level above: the sample that it lies below, -1 if it is not on the path,
	// and where in path the ids below it begin.
	sample []int32
	rest   []int32
}

// down goes to level k and reports whether the path goes on below it for some sample.
func (d *descent) down(k int, ids *tables.Vector, parents []int32) bool {
	sample, rest := make([]int32, ids.Len()), make([]int32, ids.Len())
	further := false
	for i := range sample {
		sample[i] = -1
		parent := parents[i]
		row := d.sample[parent]
		if row < 0 {
			continue
		}
		// Ids of old formats may contain "/", so the path is compared with whole ids instead of
		// being split. For that reason samples may also reach their rows on different levels: the
		// first level counts.
		want, name := d.path[d.rest[parent]:], ids.Bytes(i)
		if len(name) == 0 || len(name) > len(want) || want[:len(name)] != string(name) {
			continue
		}
		switch {
		case len(name) == len(want):
			d.level = cmp.Or(d.level, k)
			if d.level == k && d.rows[row] < 0 {
				d.rows[row] = int32(i)
			}
		case want[len(name)] == '/':
			sample[i], rest[i], further = row, d.rest[parent]+int32(len(name))+1, true
		}
	}
	d.sample, d.rest = sample, rest
	return further
}

// columnsMode returns how the columns of all containers are joined: as their group says if there is only one group,
// else by column.Intersection.
func columnsMode(s *spec.Source) column.Mode {
	if s.Joins() && len(s.Where[0].Concat) == 1 {
		return s.Where[0].Concat[0].Mode()
	}
	return column.Intersection
}

// fileFilters returns the filters by place and time that the conditions of a source apply, so files of a TACOLLECTION
// that they rule out stay unopened. It returns nil if a condition may look at more than one sample, or is invalid,
// which applying it says.
func fileFilters(s *spec.Source) (filters []spacetime.Filter) {
	if s.IDList != "" || s.Tables != nil { // a sample in a file that stays unopened would not be found missing
		return nil
	}
	for i := range s.Where {
		condition := &s.Where[i]
		// The answer of such a condition would change if it did not see the samples of every file.
		if condition.Select != "" || condition.Concat != nil {
			return nil
		}
		if condition.BBox == nil && condition.Datetime == "" {
			continue
		}
		filter, err := rows.Filter(condition)
		if err != nil {
			return nil
		}
		filters = append(filters, filter)
	}
	return filters
}
