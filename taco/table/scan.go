package table

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pq"
)

// Scan calls f with the values of column i, piece by piece in the order of the rows: v has those from
// row first on, and is valid during the call. Values that are not in memory are decoded a page at a time
// and not kept, so that one look at a large column costs little.
func (t *Table) Scan(ctx context.Context, i int, f func(first int, v *Vector) error) error {
	if v := t.inMemory(i); v != nil {
		return f(0, v)
	}
	if p := t.pages; p != nil && p.keep == nil {
		if field := &p.f.Fields[i]; field.Leaf >= 0 && !field.Repeated {
			return p.scan(ctx, field.Leaf, int64(t.n), f)
		}
	}
	v, err := t.At(ctx, i)
	if err != nil {
		return err
	}
	return f(0, v)
}

func (t *Table) inMemory(i int) *Vector {
	l := &t.loaded[i]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.v
}

// scan is Scan of a column of n values at the top of the schema.
func (p *parquet) scan(ctx context.Context, leaf int, n int64, f func(first int, v *Vector) error) error {
	b := newBuilder(p, leaf)
	done := int64(0)
	var failed error
	err := p.pages(ctx, leaf, func(v *pq.Values, first int64) error {
		if first != done || int64(v.Len()) > n-done {
			return fault.New(fault.Corrupt, "column "+b.name, fault.NoOffset, "a page of rows %d to %d, %d of %d are read", first, first+int64(v.Len()), done, n)
		}
		b.reset()
		if err := b.addRange(v, 0, v.Len()); err != nil {
			return err
		}
		done += int64(v.Len())
		failed = f(int(first), b.vector())
		return failed
	})
	switch {
	case failed != nil:
		return failed
	case err == nil && done != n:
		err = fault.New(fault.Corrupt, "column "+b.name, fault.NoOffset, "%d values in a table of %d rows", done, n)
	}
	return fault.WithPart(err, "table", p.base)
}

// reset empties the builder and keeps its memory.
func (b *builder) reset() {
	w := &b.v
	w.n, b.nulls, w.nulls = 0, false, nil
	w.ints, w.high, w.floats, w.data = w.ints[:0], w.high[:0], w.floats[:0], w.data[:0]
	if w.offs != nil {
		w.offs = w.offs[:1]
	}
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
	return v.Take(rows), nil
}

// few returns what reads column i at rows, if they are few and ascend, and the column is not in memory; else nil.
// Pages that it decodes are held, for the next question.
func (t *Table) few(i int, rows []int) *parquet {
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
func (t *Table) only(i int, rows []int) *parquet {
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
