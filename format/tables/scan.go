package tables

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/paged"
	"github.com/chaski-eo/chaski/format/tables/parquet"
)

// Scan calls f with the values of column i, of kind String or Binary, at rows, which must ascend; it skips nulls. A
// value is valid during the call. Values that are not in memory are decoded a page at a time, and kept only if keep is
// set, so one look at a large column costs little memory.
func (t *Table) Scan(ctx context.Context, i int, rows []int, keep bool, f func(row int, value []byte) error) error {
	if reader := t.readerOf(i, rows); reader != nil {
		reader.hold = keep
		return reader.scan(ctx, t.pages.f.Fields[i].Leaf, rows, f)
	}
	values, err := t.At(ctx, i)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if values.Null(row) {
			continue
		}
		if err := f(row, values.Bytes(row)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) inMemory(i int) *Vector {
	values, _ := t.loaded[i].Known()
	return values
}

// scan implements Scan for a column at the top of the schema. The table has rows.
func (p *parquetTable) scan(ctx context.Context, leaf int, rows []int, f func(row int, value []byte) error) error {
	var failed error
	left := rows
	err := p.pages(ctx, leaf, func(values *parquet.Values) error {
		for i := range values.Len() {
			row := left[0]
			if left = left[1:]; values.Null(i) {
				continue
			}
			if failed = f(row, values.Raw(i)); failed != nil {
				return failed
			}
		}
		return nil
	})
	switch {
	case failed != nil:
		return failed
	case err == nil && len(left) > 0:
		err = fault.New(fault.Corrupt, "column "+p.f.Columns[leaf].Name, "no page has row %d", left[0])
	}
	return fault.WithPart(err, "table", p.base)
}

// readerOfFew returns a reader of column i at rows that keeps the pages it decodes, because the next request is often
// for rows nearby. It returns nil if the rows are more than a quarter of all, which decoding the whole column serves
// better, or where readerOf does.
func (t *Table) readerOfFew(i int, rows []int) *parquetTable {
	if len(rows) > t.n/4 {
		return nil
	}
	reader := t.readerOf(i, rows)
	if reader != nil {
		reader.hold = true
	}
	return reader
}

// readerOf returns a reader of column i at rows, or nil if the column is nested or in memory, or the rows do not
// ascend.
func (t *Table) readerOf(i int, rows []int) *parquetTable {
	if t.pages == nil || t.pages.keep != nil || t.inMemory(i) != nil {
		return nil
	}
	if f := &t.pages.f.Fields[i]; f.Leaf < 0 || f.Repeated {
		return nil
	}
	keep := paged.Spans{}
	for _, r := range rows {
		row, spans := int64(r), len(keep)
		switch {
		case row < 0 || spans > 0 && row < keep[spans-1].Hi:
			return nil
		case spans > 0 && row == keep[spans-1].Hi:
			keep[spans-1].Hi++
		default:
			keep = append(keep, paged.Span{Lo: row, Hi: row + 1})
		}
	}
	reader := *t.pages
	reader.keep = keep
	return &reader
}
