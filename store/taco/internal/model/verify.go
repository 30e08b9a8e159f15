package model

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
)

// Verify checks everything and adds its results to r.
func (c *Container) Verify(ctx context.Context, r *Report) error {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if err := c.deepen(ctx); err != nil {
		return err
	}
	var kinds []Kind
	for k := range c.levels {
		var err error
		if kinds, err = c.verifyRows(ctx, k, kinds, r); err != nil {
			return err
		}
	}
	return c.Reader.Verify(ctx, r)
}

// sibling is what differs between the rows below one row. At level 0 of an index the rows of each object do.
type sibling struct {
	parent     int32
	object, id string
}

// verifyRows checks what holds for the rows of a level of every format: each has an id, a kind and a place, and a
// folder as its parent, no sibling has its id, and all values of the table can be read. above are the kinds of the rows
// of the level above. It returns the kinds of this level.
func (c *Container) verifyRows(ctx context.Context, k int, above []Kind, r *Report) ([]Kind, error) {
	level, err := c.Linked(ctx, k)
	if err != nil {
		return nil, err
	}
	r.Rows += int64(level.Table.Len())
	kinds := make([]Kind, level.Table.Len())
	seen := make(map[sibling]bool, len(kinds))
	for row := range kinds {
		e, err := c.EntryOf(ctx, k, row)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		kinds[row] = e.Kind
		is := sibling{id: e.ID}
		if k > 0 {
			is.parent = level.Parents[row]
			if above[is.parent] == File {
				return nil, c.InRow(k, row, "its parent, row %d of level %d, is a FILE", is.parent, k-1)
			}
		}
		if c.Form.Indexes() {
			is.object = e.URI
		}
		if seen[is] && !c.Form.InShards() { // of shards, only the first is found by its id
			return nil, c.InRow(k, row, "a sibling has the same %s %q", c.IDColumn, e.ID)
		}
		seen[is] = true
		if e.Kind == File && (c.Form.Older() || c.Form.InShards()) { // the others count the bytes that they read
			r.Files++
			r.Bytes += e.Size
		}
	}
	return kinds, fault.WithFile(fault.WithPart(level.Table.Check(ctx), LevelName(k), 0), c.URI)
}

// InRow returns an error about a value in a row.
func (c *Container) InRow(k, row int, format string, args ...any) error {
	return fault.WithFile(fault.New(fault.Corrupt, RowName(k, row), fault.NoOffset, format, args...), c.URI)
}
