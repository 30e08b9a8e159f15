package taco

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// SQL runs a SELECT over the tables of the dataset, in the SQL of package query. The dataset must
// stay open while the result is used.
func (d *Dataset) SQL(ctx context.Context, sql string) (*tables.Table, error) {
	t, err := query.Run(ctx, sql, d.SQLTable)
	return t, fault.WithFile(err, d.name())
}

// SQLTables returns the names of the dataset's tables: data, level1, … and l0, l1, …, and of TACO 3 dataset, sample,
// children, ….
func (d *Dataset) SQLTables() []string {
	names := []string{"data"}
	if tables := d.LevelNames(); tables != nil {
		names = append([]string{"dataset"}, append(tables, names...)...)
	}
	for k := 1; k < d.Levels(); k++ {
		names = append(names, fmt.Sprintf("level%d", k))
	}
	for k := range d.Levels() {
		names = append(names, fmt.Sprintf("l%d", k))
	}
	if d.hasChunks() {
		names = append(names, "chunks")
	}
	return names
}

// SQLTable returns a table by its name, ignoring case. data, level1, … have the stored rows and columns, padding
// included, without the histograms of a streaming TACO; level0 is data. lK has a row for each row of level K, with its
// columns and its parents' columns, named "l0:id", "l1:id", …. A streaming TACO also has chunks.
func (d *Dataset) SQLTable(ctx context.Context, name string) (*tables.Table, error) {
	if strings.EqualFold(name, "chunks") && d.hasChunks() {
		return d.chunks(ctx, false)
	}
	table, err := d.StoredTable(ctx, name)
	k, ok := LevelOf(name)
	some := slices.ContainsFunc(d.parts, func(p *model.Container) bool { return len(p.Histograms) > 0 })
	if err != nil || !ok || k >= d.Levels() || !some {
		return table, err
	}
	rows, err := d.samples(ctx, k)
	if err != nil {
		return nil, err
	}
	return table.Take(rows), nil
}

// StoredTable is SQLTable with the histograms of a streaming TACO, so its row i is row i of the level.
func (d *Dataset) StoredTable(ctx context.Context, name string) (*tables.Table, error) {
	switch low := strings.ToLower(name); {
	case low == "data":
		return d.Level(ctx, 0)
	case low == "chunks" && d.hasChunks():
		return d.chunks(ctx, true)
	case low == "dataset" && d.LevelNames() != nil:
		return d.wide(ctx)
	case slices.Contains(d.LevelNames(), name):
		return d.LevelTable(ctx, name)
	}
	if k, ok := LevelOf(name); ok {
		if err := d.all.Reach(ctx, k); err != nil {
			return nil, err
		}
		switch whole := strings.HasPrefix(strings.ToLower(name), "level"); {
		case k >= d.all.Levels():
		case whole:
			return d.Level(ctx, k)
		default:
			return d.withParents(ctx, k)
		}
	}
	return nil, tables.NoTable(name, d.SQLTables())
}

// LevelOf returns the level of the rows of a table, by its name: data, level1, …, l0, l1, ….
func LevelOf(name string) (level int, ok bool) {
	low := strings.ToLower(name)
	if low == "data" {
		return 0, true
	}
	digits, ok := strings.CutPrefix(low, "level")
	if !ok {
		digits, ok = strings.CutPrefix(low, "l")
	}
	level, err := strconv.Atoi(digits)
	return level, ok && err == nil && level >= 0 && digits == strconv.Itoa(level)
}

// withParents returns the rows of a level, each after its parents in the levels above.
func (d *Dataset) withParents(ctx context.Context, level int) (*tables.Table, error) {
	parts := make([]*tables.Table, level+1)
	var rows []int // row at level k for each row of the level; nil: the same
	for k := level; ; k-- {
		table, err := d.Level(ctx, k)
		if err != nil {
			return nil, err
		}
		if rows != nil {
			table = table.Take(rows)
		}
		parts[k] = table.Rename(func(name string) string { return fmt.Sprintf("l%d:%s", k, name) })
		if k == 0 {
			return tables.Join(parts...), nil
		}
		up, err := d.Parents(ctx, k)
		if err != nil {
			return nil, err
		}
		next := make([]int, parts[level].Len())
		for i := range next {
			row := i
			if rows != nil {
				row = rows[i]
			}
			next[i] = int(up[row])
		}
		rows = next
	}
}
