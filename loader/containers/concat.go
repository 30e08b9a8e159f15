package containers

import (
	"context"
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco"
)

// Concat implements rows.Levels: it applies the conditions of each group to the containers of that group and joins the
// samples that remain, in the order of the groups. Queries then see the joined tables of the groups as data; the column
// mode of the dataset says what happens to columns that a group lacks.
func (c *Container) Concat(ctx context.Context, s *rows.Selector, groups []spec.Group) error {
	have, used := c.set.Paths(), 0
	for _, g := range groups {
		used += g.Paths
	}
	if used != have {
		return fault.New(fault.Unsupported, "concat", "its groups have %d paths, and there are %d", used, have)
	}
	// The groups divide the paths of the dataset in order, so a row of a group is its number in the
	// group plus the first row of the group.
	data, subs := make([]*tables.Table, len(groups)), make([]*Container, len(groups))
	var samples []int32
	start := 0
	for i := range groups {
		first, sub, err := c.group(ctx, start, &groups[i])
		if err != nil {
			return err
		}
		start += groups[i].Paths
		subs[i] = sub
		table, places, err := sub.selectSamples(ctx)
		if err != nil {
			return err
		}
		// withSources adds this column again, with the names that the whole dataset has for its
		// files.
		data[i] = table.Without(taco.SourceColumn)
		for _, row := range places {
			samples = append(samples, int32(first)+row)
		}
	}
	joined, err := tables.Concat(data, c.set.Mode())
	if err != nil {
		return fault.WithPart(err, "concat", fault.NoOffset)
	}
	c.tellColumns(joined, data)
	s.Data, s.Samples = c.withSources(joined, samples), samples
	s.Meet(slices.Values(samples))
	if c.matches, err = leftOf(ctx, subs); err != nil {
		return err
	}
	level0 := []int{}
	for row, kept := range s.Keep {
		if kept {
			level0 = append(level0, row)
		}
	}
	c.base = append(store.Selection{level0}, c.matches[min(1, len(c.matches)):]...)
	return nil
}

// leftOf joins the selections of the groups: on each level the rows of one group follow the rows of
// the group before. It returns nil if no group selects rows on a level.
func leftOf(ctx context.Context, groups []*Container) (store.Selection, error) {
	deepest := 0
	for _, g := range groups {
		deepest = max(deepest, len(g.matches))
	}
	var left store.Selection
	for part := range deepest {
		rows, first := []int{}, 0
		for _, container := range groups {
			table, err := container.set.Level(ctx, part)
			if fault.KindOf(err) == fault.NotFound { // a Tortilla may have fewer levels than another
				continue
			}
			if err != nil {
				return nil, err
			}
			if part < len(container.matches) {
				for _, row := range container.matches[part] {
					rows = append(rows, first+row)
				}
			} else { // this group has no selection on level k, so all its rows count
				for row := range table.Len() {
					rows = append(rows, first+row)
				}
			}
			first += table.Len()
		}
		left = append(left, rows)
	}
	return left, nil
}

// group returns the containers of a group, whose conditions are not applied yet. from is the number of their first path
// in the dataset; first is the row of level 0 of the dataset at which the rows of the group begin.
func (c *Container) group(ctx context.Context, from int, g *spec.Group) (first int, sub *Container, err error) {
	set, first, err := c.set.Group(ctx, from, from+g.Paths, g.Mode(), spec.Joins(g.Where))
	if err != nil {
		return 0, nil, err
	}
	// The set belongs to c.set, so sub must not be closed.
	src := &spec.Source{Source: c.src.Source, Subset: spec.Subset{Where: g.Where}}
	return first, &Container{set: Set{set}, src: src, options: c.options, keep: c.keep}, nil
}

// tellColumns warns about columns that some group lacks, and about columns that became strings.
func (c *Container) tellColumns(joined *tables.Table, data []*tables.Table) {
	names := make([]string, len(data))
	for i := range data {
		names[i] = fmt.Sprintf("dataset %d of %d", i+1, len(data))
	}
	messages := tables.Missing(data, names, c.set.Mode())
	for _, m := range append(messages, tables.JoinedAsStrings(joined, data, names)...) {
		c.set.Warn("level0: " + m)
	}
}

// withSources adds the column with the file of each row to a table with these rows of level 0, which lacks it. It
// returns t itself if the dataset has no such column.
func (c *Container) withSources(t *tables.Table, rows []int32) *tables.Table {
	i := c.level0.Index(taco.SourceColumn)
	if i < 0 {
		return t
	}
	return tables.Join(t, c.level0.Select([]int{i}).Take(num.As[int](rows)))
}

// SQLTable implements rows.Levels: it returns a table that queries know by name, but not data: the table of
// taco.Dataset.SQLTable. After a concat the tables of lower levels have only the rows below the joined samples.
func (c *Container) SQLTable(ctx context.Context, name string) (*tables.Table, error) {
	level, ok := taco.LevelOf(name)
	if c.base == nil || !ok {
		return c.set.SQLTable(ctx, name)
	}
	table, err := c.set.StoredTable(ctx, name)
	if err != nil {
		return nil, err
	}
	rows, err := c.set.RowsBelow(ctx, c.base, level)
	if err != nil {
		return nil, err
	}
	return table.Take(rows), nil
}

// IDColumn implements rows.Levels.
func (c *Container) IDColumn() string { return c.set.IDColumn() }

// Top implements rows.Levels.
func (c *Container) Top() *tables.Table { return c.level0 }
