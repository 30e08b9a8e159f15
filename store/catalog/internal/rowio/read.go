package rowio

import (
	"bytes"
	"context"
	"errors"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
)

// blockRows is how many rows a Reader reads at a time. With their blobs, they are in memory.
const blockRows = 128

// Reader reads the rows of a catalog in order.
type Reader struct {
	columns           []*columns.Stored // those of Row; nil: the catalog lacks it
	block             [blockRows]Row
	to                [blockRows][]any // where each row of the block has the value of each column
	first, next, rows int64            // the first row of the block, the next one, and how many there are
}

// NewReader returns a reader of a catalog. Columns that it lacks are null in all rows.
func NewReader(table *columns.Table) (*Reader, error) {
	opened := &Reader{rows: table.Rows(), first: -blockRows}
	for i := range opened.block {
		r := &opened.block[i]
		opened.to[i] = []any{&r.URI, &r.Index, &r.Header, &r.Bands, &r.Height, &r.Width, &r.DType, &r.NoData,
			&r.NoDataExact, &r.EPSG, &r.CRS, &r.Names, &r.Beside, &r.Transform, &r.MinX, &r.MinY, &r.MaxX, &r.MaxY,
			&r.Size, &r.MTime, &r.ETag, &r.Offset, &r.Length}
	}
	for _, field := range Fields() {
		stored, err := table.Stored(field.Name())
		if err != nil && !errors.Is(err, fault.NotFound) {
			return nil, err
		}
		opened.columns = append(opened.columns, stored)
	}
	return opened, nil
}

// Rows returns the number of rows.
func (r *Reader) Rows() int64 { return r.rows }

// Peek returns the next row, nil behind the last one. A value of another type than Row has is fault.Corrupt.
func (r *Reader) Peek(ctx context.Context) (*Row, error) {
	if r.next == r.rows {
		return nil, nil
	}
	if r.next >= r.first+blockRows {
		if err := r.read(ctx); err != nil {
			return nil, err
		}
	}
	return &r.block[r.next-r.first], nil
}

// Skip goes past the next row.
func (r *Reader) Skip() { r.next++ }

// read reads the block of the next row.
func (r *Reader) read(ctx context.Context) error {
	r.block, r.first = [blockRows]Row{}, r.next
	for k, from := range r.columns {
		if from == nil {
			continue
		}
		err := from.Part(ctx, r.first, min(r.first+blockRows, r.rows), func(row int64, v column.Value) error {
			if !v.Null && !set(r.to[row-r.first][k], from.Kind, v) {
				return fault.New(fault.Corrupt, "column "+Fields()[k].Name(), "row %d has a value of another type", row)
			}
			return nil
		})
		if err != nil {
			r.first = -blockRows
			return err
		}
	}
	return nil
}

// set sets what to points to, and returns false if it is of another type.
func set(to any, kind column.Kind, v column.Value) bool {
	switch kind {
	case column.Text:
		if blob, ok := to.(*[]byte); ok {
			*blob = bytes.Clone(v.Text)
			return true
		}
		return setAs(to, string(v.Text))
	case column.Int:
		return setAs(to, v.Int) || int64(int32(v.Int)) == v.Int && setAs(to, int32(v.Int))
	case column.Float:
		return setAs(to, v.Float)
	}
	list := make([]float64, len(v.List))
	for i := range v.List {
		list[i] = v.List[i].Float
	}
	return kind == column.Float|column.List && setAs(to, list)
}

// setAs is set of a T or an optional one.
func setAs[T any](to any, v T) bool {
	switch target := to.(type) {
	case *T:
		*target = v
	case **T:
		*target = new(v)
	default:
		return false
	}
	return true
}
