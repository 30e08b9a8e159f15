// Package images makes datasets of the images of arrays.
package images

import (
	"context"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Images are the images along the axis n of an array, or of several. Beside metadata columns, the one column to scan is
// the coordinate along n.
type Images struct {
	URI        string
	Noun       string // what the dataset is, for errors
	Hash       string // the fingerprint
	N          int64
	IsN        func(column string) bool // reports whether a column is the coordinate along n
	Coordinate func(row int64) int64    // along n; 0 for an array without n
	Name       func(row int64) string   // the id: the coordinate as a string
	Grid       func(field int) chunk.Index
	Raster     func(field int, row int64) catalog.Asset
	// Values returns the values of a field that is a metadata column, or nil if the field is a raster. nil if no field
	// has values.
	Values func(field int) Values
	// Metadata returns the values of a metadata column by its name, which are no lists. nil if the images have none.
	Metadata func(ctx context.Context, column string) (Values, error)
}

// Values are the values of a metadata column.
type Values interface {
	Kind() catalog.Kind
	Unit() time.Duration // as rows.Column has it
	Value(row int64) catalog.Value
}

// maxImages bounds the rows of an array, because selected rows are numbered in uint32.
const maxImages = 1 << 32

// Table returns the images as a table with a number of fields, or fault.Limit if they are too many. An array keeps no
// file open.
func (t *Images) Table(fields int) (*rows.Table, error) {
	if t.N > maxImages {
		return nil, fault.WithFile(fault.New(fault.Limit, "dataset",
			"%d rows, at most %d", t.N, int64(maxImages)), t.URI)
	}
	made := &rows.Table{
		N: t.N, Fingerprint: t.Hash, Column: t.column, Close: func() error { return nil }, Array: true,
		ID: func(_ context.Context, row int64) (string, error) { return t.Name(row), nil },
		ScanIDs: func(ctx context.Context, visit func(row int64, id string) error) error {
			return t.each(ctx, func(row int64) error { return visit(row, t.Name(row)) })
		},
	}
	for i := range fields {
		if t.Values != nil && t.Values(i) != nil {
			values := t.Values(i)
			made.Fields = append(made.Fields, rows.Field{Kind: values.Kind(),
				Value: func(_ context.Context, row int64) (catalog.Value, error) { return values.Value(row), nil }})
			continue
		}
		grid := t.Grid(i)
		made.Fields = append(made.Fields, rows.Field{
			Kind:  catalog.Raster,
			Size:  &catalog.Size{Height: int32(grid.Height), Width: int32(grid.Width)},
			Asset: func(_ context.Context, row int64) (catalog.Asset, error) { return t.Raster(i, row), nil },
			Value: func(context.Context, int64) (catalog.Value, error) {
				return catalog.Value{}, fault.WithFile(fault.New(fault.Unsupported, "dataset",
					"%s has no metadata columns", t.Noun), t.URI)
			},
		})
	}
	return made, nil
}

// column implements rows.Table.Column.
func (t *Images) column(ctx context.Context, name string) (rows.Column, error) {
	if !t.IsN(name) && t.Metadata != nil {
		values, err := t.Metadata(ctx, name)
		if err != nil {
			return rows.Column{}, err
		}
		scan := func(ctx context.Context, visit func(row int64, v catalog.Value) error) error {
			return t.each(ctx, func(row int64) error { return visit(row, values.Value(row)) })
		}
		return rows.Column{Kind: values.Kind(), Unit: values.Unit(), Scan: scan}, nil
	}
	if !t.IsN(name) {
		return rows.Column{}, fault.WithFile(fault.New(fault.NotFound, "column "+name,
			"%s has only the coordinate along n", t.Noun), t.URI)
	}
	scan := func(ctx context.Context, visit func(row int64, v catalog.Value) error) error {
		return t.each(ctx, func(row int64) error { return visit(row, catalog.Value{Int: t.Coordinate(row)}) })
	}
	return rows.Column{Kind: catalog.Int, Scan: scan}, nil
}

// each visits all rows until an error.
func (t *Images) each(ctx context.Context, visit func(row int64) error) error {
	for row := range t.N {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := visit(row); err != nil {
			return err
		}
	}
	return nil
}
