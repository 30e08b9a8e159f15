// Package images makes datasets of the images of arrays.
package images

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Images are the images along the axis n of an array, or of several. They have no metadata columns; the one column to
// scan is the coordinate along n.
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
}

// maxImages bounds the rows of an array, because selected rows are numbered in uint32.
const maxImages = 1 << 32

// Table returns the images as a table, or fault.Limit if they are too many.
func (t *Images) Table() (rows.Table, error) {
	if t.N > maxImages {
		return nil, fault.WithFile(fault.New(fault.Limit, "dataset", fault.NoOffset,
			"%d rows, at most %d", t.N, int64(maxImages)), t.URI)
	}
	return table{*t}, nil
}

// table is a rows.Table of images.
type table struct{ images Images }

// Len implements rows.Table.
func (t table) Len() int64 { return t.images.N }

// Kind implements rows.Table: all fields are rasters.
func (t table) Kind(int) catalog.Kind { return catalog.Raster }

// Close implements rows.Table. An array keeps no file open.
func (t table) Close() error { return nil }

// Fingerprint implements rows.Table.
func (t table) Fingerprint() string { return t.images.Hash }

// Asset implements rows.Table.
func (t table) Asset(_ context.Context, field int, row int64) (catalog.Asset, error) {
	return t.images.Raster(field, row), nil
}

// Value implements rows.Table: it is an error, because arrays have no metadata columns.
func (t table) Value(context.Context, int, int64) (catalog.Value, error) {
	return catalog.Value{}, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
		"%s has no metadata columns", t.images.Noun), t.images.URI)
}

// ID implements rows.Table: it returns the coordinate along n.
func (t table) ID(_ context.Context, row int64) (string, error) { return t.images.Name(row), nil }

// ScanIDs implements rows.Table.
func (t table) ScanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	return t.each(ctx, func(row int64) error { return visit(row, t.images.Name(row)) })
}

// Column implements rows.Table.
func (t table) Column(_ context.Context, name string) (rows.Column, error) {
	if !t.images.IsN(name) {
		return rows.Column{}, fault.WithFile(fault.New(fault.NotFound, "column "+name, fault.NoOffset,
			"%s has only the coordinate along n", t.images.Noun), t.images.URI)
	}
	scan := func(ctx context.Context, visit func(row int64, v catalog.Value) error) error {
		return t.each(ctx, func(row int64) error { return visit(row, catalog.Value{Int: t.images.Coordinate(row)}) })
	}
	return rows.Column{Kind: catalog.Int, Scan: scan}, nil
}

// each visits all rows until an error.
func (t table) each(ctx context.Context, visit func(row int64) error) error {
	for row := range t.images.N {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := visit(row); err != nil {
			return err
		}
	}
	return nil
}

// Extras implements rows.Table.
func (t table) Extras() rows.Extras { return rows.Extras{Array: true, Size: t.size} }

// size implements rows.Extras.Size.
func (t table) size(field int) catalog.Size {
	grid := t.images.Grid(field)
	return catalog.Size{Height: int32(grid.Height), Width: int32(grid.Width)}
}
