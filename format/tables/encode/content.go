package encode

import (
	"context"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/format/tables"
)

// Pages whose ends follow from the values around them are the same bytes in two versions of a table, also where rows
// were added or removed before them. A store that keeps equal pieces of files once, such as Xet of Hugging Face, then
// gets only the pages that changed (TACO 2.0.0, "FOLDER Format": content-defined chunking, about 64 KB on average).
const (
	// A page has at least pageLeast bytes of values, and then ends after a byte with a chance of 1 in pageMore:
	// 16 + 48 KiB are 64 KiB on average.
	pageLeast = 16 << 10
	pageMore  = 48 << 10
	// pageMost ends a page whose values give no end, such as equal ones; of others one in e^4 comes so far. It is below
	// the 250,880 bytes at which the Parquet library ends a page by itself.
	pageMost = pageLeast + 4*pageMore
)

// gear has a random number for each byte, of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014) from 1 on. The hash of a value depends on its last 64 bytes: each byte shifts the earlier ones by
// a bit (Xia and others, "FastCDC", 2016).
var gear = func() (g [256]uint64) {
	state := uint64(1)
	for i := range g {
		state += 0x9e3779b97f4a7c15
		z := (state ^ state>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		g[i] = z ^ z>>31
	}
	return g
}()

// cutter finds the ends of the pages of a column of the file.
type cutter struct {
	hash    uint64
	size    uint64 // bytes of values since the last end
	scratch []byte
}

// ends reports whether a page ends behind a row.
func (c *cutter) ends(row []parquet.Value) bool {
	size := uint64(0)
	for _, v := range row {
		c.scratch = append(v.AppendBytes(c.scratch[:0]), byte(v.DefinitionLevel()))
		for _, b := range c.scratch {
			c.hash = c.hash<<1 + gear[b]
		}
		size += uint64(len(c.scratch))
	}
	c.size += size
	if c.size < pageLeast {
		return false
	}
	// The upper half of the hash, which depends on all 64 bytes, is a fraction; a row of n bytes ends a page with a
	// chance of n in pageMore.
	if c.hash>>32 >= size<<32/pageMore && c.size < pageMost {
		return false
	}
	c.size = 0
	return true
}

// group writes rows lo to hi as a row group. With w.content, its pages end where their values say.
func (w *Writer) group(ctx context.Context, file *parquet.GenericWriter[any], s *shredder, cols []*tables.Vector,
	lo, hi int) error {
	writers := file.ColumnWriters()
	for c, values := range cols {
		shape := &w.shapes[c]
		cutters, begun := make([]cutter, shape.end-shape.first), make([]int, shape.end-shape.first)
		write := func(k int, end bool) error {
			if _, err := writers[k].WriteRowValues(s.leaves[k]); err != nil {
				return wrapped(err)
			}
			s.leaves[k], begun[k-shape.first] = s.leaves[k][:0], 0
			if end {
				return wrapped(writers[k].Flush())
			}
			return nil
		}
		for k := shape.first; k < shape.end; k++ {
			s.leaves[k] = s.leaves[k][:0]
		}
		for i := lo; i < hi; i++ {
			if (i-lo)%blockRows == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			s.add(shape, values, i, 0, 0, 0)
			full := i+1 == hi || (i-lo)%blockRows == blockRows-1
			for leaf := shape.first; leaf < shape.end && (w.content || full); leaf++ {
				end := false
				if w.content {
					start := begun[leaf-shape.first]
					begun[leaf-shape.first] = len(s.leaves[leaf])
					end = cutters[leaf-shape.first].ends(s.leaves[leaf][start:])
				}
				if end || full {
					if err := write(leaf, end); err != nil {
						return err
					}
				}
			}
		}
	}
	return wrapped(file.Flush())
}
