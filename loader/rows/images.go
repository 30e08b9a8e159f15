package rows

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// images is a Table of the images along the axis n of a TileDB array, or of a Zarr array or group. It has no metadata
// columns; the one column to scan is the coordinate along n.
type images struct {
	uri         string
	kind        string // what the dataset is, for errors
	fingerprint string
	n           int64
	isN         func(column string) bool // reports whether a column is the coordinate along n
	coordinate  func(row int64) int64    // along n; 0 for an array without n
	id          func(row int64) string   // the coordinate as a string
	size        func(field int) catalog.Size
	asset       func(field int, row int64) catalog.Asset
}

// maxImages bounds the rows of an array, because selected rows are numbered in uint32.
const maxImages = 1 << 32

// table returns the table, or fault.Limit if it has too many rows.
func (t *images) table(src *spec.Source) (Table, error) {
	if t.n > maxImages {
		return nil, fault.WithFile(fault.New(fault.Limit, "dataset", fault.NoOffset,
			"%d rows, at most %d", t.n, int64(maxImages)), src.Source)
	}
	return t, nil
}

// Len implements Table.
func (t *images) Len() int64 { return t.n }

// Kind implements Table: all fields are rasters.
func (t *images) Kind(int) catalog.Kind { return catalog.Raster }

// Close implements Table. An array keeps no file open.
func (t *images) Close() error { return nil }

// Fingerprint implements Table.
func (t *images) Fingerprint() string { return t.fingerprint }

// Asset implements Table.
func (t *images) Asset(_ context.Context, field int, row int64) (catalog.Asset, error) {
	return t.asset(field, row), nil
}

// Value implements Table: it is an error, because arrays have no metadata columns.
func (t *images) Value(context.Context, int, int64) (catalog.Value, error) {
	return catalog.Value{}, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
		"%s has no metadata columns", t.kind), t.uri)
}

// ID implements Table: it returns the coordinate along n.
func (t *images) ID(_ context.Context, row int64) (string, error) { return t.id(row), nil }

// ScanIDs implements Table.
func (t *images) ScanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	return t.each(ctx, func(row int64) error { return visit(row, t.id(row)) })
}

// Column implements Table.
func (t *images) Column(_ context.Context, name string) (Column, error) {
	if !t.isN(name) {
		return Column{}, fault.WithFile(fault.New(fault.NotFound, "column "+name, fault.NoOffset,
			"%s has only the coordinate along n", t.kind), t.uri)
	}
	return Column{catalog.Int, 0, func(ctx context.Context, visit func(row int64, v catalog.Value) error) error {
		return t.each(ctx, func(row int64) error { return visit(row, catalog.Value{Int: t.coordinate(row)}) })
	}}, nil
}

// each visits all rows until an error.
func (t *images) each(ctx context.Context, visit func(row int64) error) error {
	for row := range t.n {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := visit(row); err != nil {
			return err
		}
	}
	return nil
}

// Extras implements Table.
func (t *images) Extras() Extras { return Extras{Array: true, Size: t.size} }

// sizeOf returns the size of the images of a field.
func sizeOf(grid chunk.Index) catalog.Size {
	return catalog.Size{Height: int32(grid.Height), Width: int32(grid.Width)}
}
