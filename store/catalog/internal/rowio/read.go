package rowio

import (
	"bytes"
	"context"
	"errors"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
)

// Reader reads the rows of a catalog.
type Reader struct {
	columns []*column.Column // those of Row
	row     Row
	to      []any // where row has the value of each column
}

// NewReader returns a reader of a catalog. Columns that it lacks are null in all rows.
func NewReader(table *columns.Table) (*Reader, error) {
	opened := &Reader{}
	r := &opened.row
	opened.to = []any{&r.URI, &r.Index, &r.Header, &r.Bands, &r.Height, &r.Width, &r.DType, &r.NoData, &r.NoDataExact,
		&r.EPSG, &r.CRS, &r.Names, &r.Beside, &r.Transform, &r.MinX, &r.MinY, &r.MaxX, &r.MaxY, &r.Size, &r.MTime,
		&r.ETag, &r.Offset, &r.Length}
	for _, field := range Fields() {
		stored, err := table.AnyColumn(field.Name())
		if errors.Is(err, fault.NotFound) {
			stored, err = column.Nulls(table.Rows()), nil
		}
		if err != nil {
			return nil, err
		}
		opened.columns = append(opened.columns, stored)
	}
	return opened, nil
}

// URI returns the URI of a row.
func (r *Reader) URI(ctx context.Context, row int64) (string, error) {
	v, err := r.columns[0].Cell(ctx, row)
	return string(v.Text), err
}

// Read returns a row. A column of values of another type is fault.Corrupt.
func (r *Reader) Read(ctx context.Context, row int64) (Row, error) {
	r.row = Row{}
	for k, from := range r.columns {
		v, err := from.Cell(ctx, row)
		if err == nil && !v.Null && !set(r.to[k], from.Kind, v) {
			err = fault.New(fault.Corrupt, "column "+Fields()[k].Name(), "row %d has a value of another type", row)
		}
		if err != nil {
			return Row{}, err
		}
	}
	return r.row, nil
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
	switch to := to.(type) {
	case *T:
		*to = v
	case **T:
		*to = new(v)
	default:
		return false
	}
	return true
}
