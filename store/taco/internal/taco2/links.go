package taco2

import (
	"context"

	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// Parents implements model.Reader.
func (c *reader) Parents(ctx context.Context, k int) ([]int32, error) {
	l, up := c.levels[k], c.levels[k-1]
	ids, err := c.column(ctx, l.Table, k, model.ColumnParent, tables.Int64)
	if err != nil {
		return nil, err
	}
	return c.join(l, up, ids, k)
}

// join turns positions in the level above (in a catalog: among its rows of the same source file)
// into rows of it.
func (c *reader) join(l, up *level, ids *tables.Vector, k int) ([]int32, error) {
	parents := make([]int32, l.Table.Len())
	var bySource map[string][]int32
	if up.Sources != nil {
		bySource = up.rowsBySource()
	}
	var last string
	var rows []int32
	for i := range parents {
		if ids.Null(i) {
			return nil, c.of.InRow(k, i, "%s is null", model.ColumnParent)
		}
		n := int64(up.Table.Len())
		if bySource != nil {
			if i == 0 || !l.sameSource(i, last) {
				last = l.source(i)
				rows = bySource[last]
			}
			n = int64(len(rows))
		}
		p := ids.Int(i)
		if p < 0 || p >= n {
			return nil, c.of.InRow(k, i, "%s is %d, the level above has rows 0 to %d",
				model.ColumnParent, p, n-1)
		}
		parents[i] = int32(p)
		if bySource != nil {
			parents[i] = rows[p]
		}
	}
	return parents, nil
}

// rowsBySource returns the rows of each source file.
func (l *level) rowsBySource() map[string][]int32 {
	m := map[string][]int32{}
	var name string
	var rows []int32
	for i := range l.Table.Len() {
		if !l.sameSource(i, name) || i == 0 {
			m[name] = rows
			name = l.source(i)
			rows = m[name]
		}
		rows = append(rows, int32(i))
	}
	m[name] = rows
	return m
}
