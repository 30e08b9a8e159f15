package taco2

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// Parents implements model.Container.
func (c *Container) Parents(ctx context.Context, k int) ([]int32, error) {
	if k == 0 {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	level, err := c.linked(ctx, k)
	if err != nil {
		return nil, err
	}
	return level.parents, nil
}

// Children implements model.Container.
func (c *Container) Children(ctx context.Context, k, row int) ([]int32, error) {
	if k+1 >= len(c.levels) {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.linked(ctx, k+1); err != nil {
		return nil, err
	}
	l := c.levels[k]
	return l.rows[l.first[row]:l.first[row+1]], nil
}

// linked returns a level below the first, after its rows were joined with the rows of the level above.
// c.mu is held.
func (c *Container) linked(ctx context.Context, k int) (*level, error) {
	l, err := c.level(ctx, k)
	if err != nil || l.parents != nil {
		return l, err
	}
	up, err := c.level(ctx, k-1)
	if err != nil {
		return nil, err
	}
	ids, err := c.column(ctx, l.tbl, k, ColumnParent, tables.Int64)
	if err != nil {
		return nil, err
	}
	parents, err := c.join(l, up, ids, k)
	if err != nil {
		return nil, err
	}
	up.first, up.rows = model.Group(parents, up.tbl.Len())
	l.parents = parents
	return l, nil
}

// join turns positions in the level above (in a catalog: among its rows of the same source file)
// into rows of it.
func (c *Container) join(l, up *level, ids *tables.Vector, k int) ([]int32, error) {
	parents := make([]int32, l.tbl.Len())
	var bySource map[string][]int32
	if up.sources != nil {
		bySource = up.rowsBySource()
	}
	var last string
	var rows []int32
	for i := range parents {
		if ids.Null(i) {
			return nil, c.row(fault.Corrupt, k, i, "%s is null", ColumnParent)
		}
		n := int64(up.tbl.Len())
		if bySource != nil {
			if i == 0 || !l.sameSource(i, last) {
				last = l.source(i)
				rows = bySource[last]
			}
			n = int64(len(rows))
		}
		p := ids.Int(i)
		if p < 0 || p >= n {
			return nil, c.row(fault.Corrupt, k, i, "%s is %d, the level above has rows 0 to %d", ColumnParent, p, n-1)
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
	for i := range l.tbl.Len() {
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
