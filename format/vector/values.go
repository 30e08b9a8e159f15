package vector

import (
	"context"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/parquet"
)

// values reads a column; nil without a name.
func (p *parquetShapes) values(ctx context.Context, name string) (*tables.Vector, error) {
	if name == "" {
		return nil, nil
	}
	column := p.f.Column(name)
	if column < 0 {
		return nil, p.f.NoColumn(name)
	}
	c, rows, meta := newCells(name), p.f.Rows, &p.f.Columns[column]
	c.exists, c.null = true, make([]bool, rows)
	known := []parquet.NoteKind{parquet.NoNote, parquet.Integer, parquet.String}
	switch {
	case meta.Repeated || !slices.Contains(known, meta.Note.Kind):
		meta = nil
	case meta.Note.Kind == parquet.String && meta.Type == parquet.ByteArray:
		c.kind, c.codes.rows = stringCell, make([]uint32, rows)
	case meta.Type == parquet.Float || meta.Type == parquet.Double:
		c.allInts, c.floats = false, make([]float64, rows)
	case meta.Type == parquet.Boolean || meta.Type == parquet.Int32 || meta.Type == parquet.Int64:
		c.ints = make([]int64, rows)
	default:
		meta = nil
	}
	if meta == nil {
		return nil, fault.New(fault.Unsupported, "column "+name, "holds no numbers and no strings")
	}
	var mu sync.Mutex // pages are read several at a time
	err := p.scan(ctx, column, func(first int, page *parquet.Values) (err error) {
		for i := range page.Len() {
			c.null[first+i] = page.Null(i)
		}
		switch end := first + page.Len(); {
		case c.floats != nil:
			page.FillFloats(c.floats[first:end])
		case c.ints != nil:
			page.FillInts(c.ints[first:end])
			over := func(x int64) bool { return x < 0 && meta.Note.Unsigned }
			if i := slices.IndexFunc(c.ints[first:end], over); i >= 0 {
				return fault.New(fault.Limit, "column "+name, "row %d has a number over 2^63-1", first+i)
			}
		default:
			mu.Lock()
			defer mu.Unlock()
			for i := 0; i < page.Len() && err == nil; i++ {
				if !page.Null(i) {
					c.codes.rows[first+i], err = c.codes.code(page.Raw(i))
				}
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.values()
}
