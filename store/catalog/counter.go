package catalog

import (
	"cmp"
	"context"

	"github.com/chaski-eo/chaski/format/tables/paged"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
)

// PageCounter counts the pages that a run reads for rasters in cells, without reading them. It is for one goroutine.
type PageCounter struct {
	table  *Table
	pages  *paged.Counter
	assets *lru.Cache[assetKey, struct{}] // as Table.assets would have
	first  map[int]Asset                  // by field: a raster that stands for all others
}

// counterTries is how many rows NewPageCounter reads until one has a raster.
const counterTries = 16

// NewPageCounter returns a counter for the fields whose rasters are in cells, if the table's cache does not hold them
// all; else nil. Of each field it reads the first raster.
func (t *Table) NewPageCounter(ctx context.Context) (*PageCounter, error) {
	c := &PageCounter{table: t, assets: lru.New[assetKey, struct{}](t.assets.Bound()), first: map[int]Asset{}}
	var least int64
	if source.IsRemote(t.src) {
		least = headBytes // of a shorter range, remote readers ask for more
	}
	for i := range t.fields {
		cells := t.fields[i].cells
		if cells == nil || cells.size() <= t.pages.cache {
			continue
		}
		c.pages = cells.table.Files[0].Cache.NewCounter(least)
		for row := range min(t.n, counterTries) {
			asset, err := t.file(ctx, i, row)
			if err == nil && asset.Member != "" {
				c.first[i] = asset
				break
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
	}
	if len(c.first) == 0 {
		return nil, nil
	}
	return c, nil
}

// With returns a context in which Table.Asset reads no cells of the counter's fields: the first raster stands for all.
func (c *PageCounter) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, counterKey{c.table}, c)
}

type counterKey struct{ table *Table }

// standIn returns the raster that stands for the one in a cell, if ctx is of PageCounter.With.
func (t *Table) standIn(ctx context.Context, field int, row int64) (a Asset, ok bool) {
	c, _ := ctx.Value(counterKey{t}).(*PageCounter)
	if c == nil {
		return a, false
	}
	if a, ok = c.first[field]; ok {
		f := &t.fields[field]
		a.URI, a.Member = t.cell(f.cells, f.tableRow(row))
	}
	return a, ok
}

// cell returns the file that has the raster of a row of the table in a cell, and the name of the cell in it.
func (t *Table) cell(c *cellRasters, row int64) (file, name string) {
	file, in := c.table.FileOf(row)
	return cmp.Or(file, t.src), cellName(in, c.column)
}

// CellName returns the name of the raster of a field in the cell of a file, "FILE::ROW/COLUMN", and "" of others.
func (t *Table) CellName(field int, row int64) string {
	f := &t.fields[field]
	if f.cells == nil {
		return ""
	}
	file, name := t.cell(f.cells, f.tableRow(row))
	return file + "::" + name
}

// Counts reports whether the counter counts the rasters of a field.
func (c *PageCounter) Counts(field int) bool { return c.first[field].Index != nil }

// Announce is Table.Announce for the counter.
func (c *PageCounter) Announce(field int, row int64) (over func()) {
	f := &c.table.fields[field]
	if !c.table.Announces() || !c.Counts(field) {
		return func() {}
	}
	return f.cells.stored.AnnounceTo(c.pages, f.tableRow(row))
}

// Read counts the reads of pages that Table.Asset makes for a field that the counter counts.
func (c *PageCounter) Read(ctx context.Context, field int, row int64) (requests, bytes int64, err error) {
	f, first := &c.table.fields[field], c.first[field]
	key := assetKey{field, f.tableRow(row)}
	if _, ok := c.assets.Get(key); ok {
		return 0, 0, nil
	}
	reads, err := f.cells.stored.Count(ctx, c.pages, key.row)
	if err == nil {
		c.assets.Add(key, struct{}{}, first.Cost()-int64(cap(first.Bytes))+reads.Cell)
	}
	return reads.Requests, reads.Bytes, err
}
