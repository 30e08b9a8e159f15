package tables

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables/parquet"
)

// Scan calls f with the values of column i, of kind Text or Binary, at rows, which ascend; not where it is null. A
// value is valid during the call. What is not in memory is decoded a page at a time, and not kept unless keep is set, so
// that one look at a large column costs little.
func (t *Table) Scan(ctx context.Context, i int, rows []int, keep bool, f func(row int, value []byte) error) error {
	if p := t.only(i, rows); p != nil {
		p.hold = keep
		return p.scan(ctx, t.pages.f.Fields[i].Leaf, rows, f)
	}
	v, err := t.At(ctx, i)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if v.Null(row) {
			continue
		}
		if err := f(row, v.Bytes(row)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) inMemory(i int) *Vector {
	l := &t.loaded[i]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.v
}

// scan is Scan of a column at the top of the schema.
func (p *parquetTable) scan(ctx context.Context, leaf int, rows []int, f func(row int, value []byte) error) error {
	var failed error
	left := rows
	err := p.pages(ctx, leaf, func(v *parquet.Values, first int64) error {
		for ; len(left) > 0 && int64(left[0]) < first+int64(v.Len()); left = left[1:] {
			k := int64(left[0]) - first
			if k < 0 {
				return p.missing(leaf, left[0])
			}
			if v.Null(int(k)) {
				continue
			}
			if failed = f(left[0], v.Raw(int(k))); failed != nil {
				return failed
			}
		}
		return nil
	})
	switch {
	case failed != nil:
		return failed
	case err == nil && len(left) > 0:
		err = p.missing(leaf, left[0])
	}
	return fault.WithPart(err, "table", p.base)
}

func (p *parquetTable) missing(leaf, row int) error {
	return fault.New(fault.Corrupt, "column "+p.f.Columns[leaf].Name, fault.NoOffset, "no page has row %d", row)
}

// Pick returns the values of column i at rows, which ascend. What is not in memory is decoded a page at
// a time, only pages that hold one of the rows, and only what is picked is kept.
func (t *Table) Pick(ctx context.Context, i int, rows []int) (*Vector, error) {
	if p := t.only(i, rows); p != nil {
		return p.column(ctx, i)
	}
	v, err := t.At(ctx, i)
	if err != nil {
		return nil, err
	}
	return v.Take(rows)
}

// few returns what reads column i at rows, if they are few and ascend, and the column is not in memory; else nil.
// Pages that it decodes are held, for the next question.
func (t *Table) few(i int, rows []int) *parquetTable {
	if len(rows) > t.n/4 {
		return nil
	}
	p := t.only(i, rows)
	if p != nil {
		p.hold = true
	}
	return p
}

// only returns what reads column i at rows, if it is at the top of the schema and not in memory, and the rows ascend;
// else nil.
func (t *Table) only(i int, rows []int) *parquetTable {
	if t.pages == nil || t.pages.keep != nil || t.inMemory(i) != nil {
		return nil
	}
	if f := &t.pages.f.Fields[i]; f.Leaf < 0 || f.Repeated {
		return nil
	}
	keep := []span{}
	for _, r := range rows {
		row, n := int64(r), len(keep)
		switch {
		case row < 0 || n > 0 && row < keep[n-1].hi:
			return nil
		case n > 0 && row == keep[n-1].hi:
			keep[n-1].hi++
		default:
			keep = append(keep, span{row, row + 1})
		}
	}
	p := *t.pages
	p.keep = keep
	return &p
}
