package parquet

import (
	"context"
	"math/bits"

	"github.com/chaski-eo/chaski/fault"
)

// Lists are the rows of one page of a column of lists, without lists within lists. They are immutable.
type Lists struct {
	values *Few    // those that exist, of all rows
	starts []int32 // the number of the first value of each row that begins in the page
}

// Len returns the number of rows that begin in the page.
func (l *Lists) Len() int { return len(l.starts) }

// Cost returns about how many bytes the page takes in memory.
func (l *Lists) Cost() int { return l.values.Cost() + 4*cap(l.starts) }

// Dictionary returns the values that the page refers to by number, or nil.
func (l *Lists) Dictionary() *Values { return l.values.Dictionary() }

// AppendHead appends the first limit of the values before the first row, as numbers. They belong to the last row that
// begins in an earlier page.
func (l *Lists) AppendHead(dst []float64, limit int) ([]float64, error) {
	end := l.values.values.n
	if len(l.starts) > 0 {
		end = int(l.starts[0])
	}
	return l.append(dst, 0, end, limit)
}

// AppendRow appends the first limit values of row i, counted from the first that begins in the page, as numbers. Null
// elements are left out.
func (l *Lists) AppendRow(dst []float64, i, limit int) ([]float64, error) {
	end := l.values.values.n
	if i+1 < len(l.starts) {
		end = int(l.starts[i+1])
	}
	return l.append(dst, int(l.starts[i]), end, limit)
}

func (l *Lists) append(dst []float64, lo, hi, limit int) ([]float64, error) {
	for i := lo; i < min(hi, lo+limit); i++ {
		values, k, err := l.values.Find(i)
		if err != nil {
			return dst, err
		}
		dst = append(dst, values.Float(k))
	}
	return dst, nil
}

// ListPages locates the pages of a column of lists in a row group. Page.First is the first row that begins in a page,
// or the next row if none does: writers of files without an offset index end pages within lists, and only the
// repetition levels say where rows begin.
func (f *File) ListPages(ctx context.Context, group, column int) (*Pages, error) {
	part, col := &f.Groups[group].chunks[column], &f.Columns[column]
	if col.repLevel != 1 {
		return nil, fault.New(fault.Unsupported, "column "+col.Name, fault.NoOffset, "does not hold lists of values")
	}
	return f.locate(ctx, group, column, func(h pageHeader, pos int64) (int64, error) {
		stored, err := f.body(ctx, &h, pos)
		if err != nil {
			return 0, err
		}
		levels, _, err := h.readLevels(stored, part, col)
		return levels.rows(int(h.values)), fault.WithPart(err, "", pos)
	})
}

// ReadLists decodes page i of a column of lists. ListPages has found the pages. It calls dict, which returns the
// column's dictionary, or nil if it has none, if the page has indexes of one.
func (f *File) ReadLists(ctx context.Context, group, column int, pages *Pages, i int,
	dict func() (*Values, error)) (*Lists, error) {
	c, col := &f.Groups[group].chunks[column], &f.Columns[column]
	page, rows := pages.Pages[i], pages.Rows(i)
	lists := &Lists{values: newFew(col, page)}
	err := f.dataPage(ctx, c, page, func(h pageHeader, stored []byte) error {
		rep, def, data, err := h.splitLevels(stored, c.codec, true, col.defLevel > 0)
		if err != nil {
			return err
		}
		count, err := lists.begin(h, rep, def, col, rows)
		if err != nil {
			return err
		}
		if len(lists.starts) != rows {
			return fault.New(fault.Corrupt, "page header", 0, "%d rows, not %d", len(lists.starts), rows)
		}
		lists.values.values = &Values{n: count, typ: col.Type, logical: col.Logical, width: col.size()}
		return lists.values.decode(data, count, h.encoding, dict)
	})
	if err != nil {
		return nil, fault.WithPart(err, "column "+col.Name, 0)
	}
	return lists, nil
}

// begin sets where the rows of a page begin, which should have rows of them, and returns how many values exist. Most
// pages have no nulls and no empty lists, so that every level stands for a value.
func (l *Lists) begin(h pageHeader, rep, def []byte, col *Column, rows int) (there int, err error) {
	n := int(h.values)
	if l.starts, err = zeros(rep, n, h.repEncoding, make([]int32, 0, min(rows, n))); err != nil {
		return 0, err
	}
	if h.defEncoding == encRLE && oneRun(def, col.defLevel, n) {
		return n, nil
	}
	defs, err := levels(def, col.defLevel, n, h.defEncoding)
	if defs == nil || err != nil {
		return n, err
	}
	next := 0
	for k, d := range defs {
		if next < len(l.starts) && int(l.starts[next]) == k {
			l.starts[next] = int32(there)
			next++
		}
		if int(d) == col.defLevel {
			there++
		}
	}
	return there, nil
}

// zeros appends to dst which of n levels of one bit are 0.
func zeros(b []byte, n int, encoding int32, dst []int32) ([]int32, error) {
	if encoding != encRLE {
		return nil, fault.New(fault.Unsupported, "page", 0, "levels in encoding %d", encoding)
	}
	for done := 0; done < n; {
		run, rest, err := nextRun(b, 1, done, n)
		if err != nil {
			return nil, err
		}
		for i := 0; run.bits == nil && run.value == 0 && i < run.count; i++ {
			dst = append(dst, int32(done+i))
		}
		for i := 0; run.bits != nil && i < run.count; i += 8 {
			m := ^run.bits[i/8]
			if left := run.count - i; left < 8 {
				m &= 1<<left - 1
			}
			for ; m != 0; m &= m - 1 {
				dst = append(dst, int32(done+i+bits.TrailingZeros8(m)))
			}
		}
		done, b = done+run.count, rest
	}
	return dst, nil
}
