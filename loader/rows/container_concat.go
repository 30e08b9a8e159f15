package rows

import (
	"context"
	"fmt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
)

// concat keeps the samples that each group leaves of its containers, one group after the other. What queries see as
// data is that of the groups, joined as the containers' columns are.
func (c *Container) concat(ctx context.Context, groups []spec.Group) error {
	have, used := c.set.Paths(), 0
	for _, g := range groups {
		used += g.Paths
	}
	if used != have {
		return fault.New(fault.Unsupported, "concat", fault.NoOffset, "its groups have %d paths, and there are %d", used, have)
	}
	data, subs := make([]*tables.Table, len(groups)), make([]*Container, len(groups))
	c.rows, c.at = nil, nil
	from := 0
	for i := range groups {
		first, sub, err := c.group(ctx, from, &groups[i])
		if err != nil {
			return err
		}
		from += groups[i].Paths
		subs[i] = sub
		t, at := sub.table()
		if sub.level0 == nil { // of no rows, but with their columns
			if t, err = sub.columnsAlone(ctx); err != nil {
				return err
			}
		}
		data[i] = t.Without(taco.SourceColumn)
		for _, row := range at {
			c.at = append(c.at, int32(first)+row)
		}
		for _, row := range sub.rows {
			c.rows = append(c.rows, int32(first)+row)
		}
	}
	t, err := tables.Concat(data, c.set.Mode())
	if err != nil {
		return fault.WithPart(err, "concat", fault.NoOffset)
	}
	c.tellColumns(t, data)
	if c.data, err = c.withSources(t); err != nil {
		return err
	}
	if c.left, err = leftOf(ctx, subs); err != nil {
		return err
	}
	c.base = append(taco.Selection{ints(c.rows)}, c.left[min(1, len(c.left)):]...)
	return nil
}

// leftOf returns what groups left of the levels below 0, whose rows follow each other on each; nil if that is all.
func leftOf(ctx context.Context, groups []*Container) (taco.Selection, error) {
	deepest := 0
	for _, g := range groups {
		deepest = max(deepest, len(g.left))
	}
	var left taco.Selection
	for k := range deepest {
		rows, first := []int{}, 0
		for _, g := range groups {
			t, err := g.set.Level(ctx, k)
			if fault.KindOf(err) == fault.NotFound { // Tortillas may be nested less than others
				continue
			}
			if err != nil {
				return nil, err
			}
			if k < len(g.left) {
				for _, row := range g.left[k] {
					rows = append(rows, first+row)
				}
			} else {
				for row := range t.Len() {
					rows = append(rows, first+row)
				}
			}
			first += t.Len()
		}
		left = append(left, rows)
	}
	return left, nil
}

// group applies the conditions of a group to its containers, which begin with path from. first is the row of level 0 that
// their rows begin at.
func (c *Container) group(ctx context.Context, from int, g *spec.Group) (first int, sub *Container, err error) {
	mode, err := g.Mode()
	if err != nil {
		return 0, nil, err
	}
	set, first, err := c.set.Group(ctx, from, from+g.Paths, mode, spec.Joins(g.Where))
	if err != nil {
		return 0, nil, err
	}
	sub = &Container{set: set, src: &spec.Source{Source: c.src.Source, Subset: spec.Subset{Where: g.Where}}, options: c.options, keep: c.keep}
	return first, sub, sub.selectSamples(ctx)
}

// columnsAlone returns the table of level 0 without its rows.
func (c *Container) columnsAlone(ctx context.Context) (*tables.Table, error) {
	if len(c.set.Parts()) == 0 {
		return tables.FromVectors(nil, nil), nil
	}
	t, err := c.set.Level(ctx, 0)
	if err != nil {
		return nil, err
	}
	return t.Take(nil), nil
}

// tellColumns warns of the columns that not all groups have, and of those that became texts.
func (c *Container) tellColumns(joined *tables.Table, data []*tables.Table) {
	numbers, names := make([]string, len(data)), make([]string, len(data))
	for i := range data {
		numbers[i], names[i] = fmt.Sprint(i+1), fmt.Sprintf("dataset %d of %d", i+1, len(data))
	}
	columns, without := tables.MissingColumns(data, numbers)
	for i, name := range columns {
		c.set.Warn(fmt.Sprintf("level0: column %q is %s: it is not in dataset %s of %d", name, c.set.Mode().Missing(), without[i], len(data)))
	}
	for _, m := range tables.TextColumns(joined, data, names) {
		c.set.Warn("level0: " + m)
	}
}

// withSources returns a table of rows of level 0 with the column of their files.
func (c *Container) withSources(t *tables.Table) (*tables.Table, error) {
	i := c.level0.Index(taco.SourceColumn)
	if i < 0 || t.Index(taco.SourceColumn) >= 0 {
		return t, nil
	}
	return tables.Join(t, c.level0.Select([]int{i}).Take(ints(c.at))), nil
}

// sqlTable returns a table that queries see by its name: data as it is given, all others as taco.Dataset.SQLTable has
// them; after groups were joined, without what does not lie below the samples that they left.
func (c *Container) sqlTable(ctx context.Context, name string, data *tables.Table) (*tables.Table, error) {
	if isData(name) {
		return data, nil
	}
	level, ok := taco.LevelOf(name)
	if c.base == nil || !ok {
		return c.set.SQLTable(ctx, name)
	}
	t, err := c.set.StoredTable(ctx, name)
	if err != nil {
		return nil, err
	}
	rows, err := c.set.RowsBelow(ctx, c.base, level)
	if err != nil {
		return nil, err
	}
	return t.Take(rows), nil
}

func ints(rows []int32) []int {
	out := make([]int, len(rows))
	for i, row := range rows {
		out[i] = int(row)
	}
	return out
}
