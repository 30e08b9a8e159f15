package rows

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog"
)

// cube is what datasets of TileDB and Zarr share: their rows are the images along the axis n, and their fields are
// rasters.
type cube struct {
	uri   string
	n     int64         // the number of rows
	grids []chunk.Index // of the images of each field
	print string        // see Fingerprint
	axes  []string      // names of the column with the coordinate along n
	// id and coordinate return those of a row.
	id         func(row int64) string
	coordinate func(row int64) int64
}

// maxCubeRows bounds the rows of an array, because selected rows are numbered in uint32.
const maxCubeRows = 1 << 32

// check returns an error if a cube has too many rows.
func (c *cube) check() error {
	if c.n <= maxCubeRows {
		return nil
	}
	return fault.WithFile(fault.New(fault.Limit, "dataset", fault.NoOffset, "%d rows, at most %d", c.n,
		int64(maxCubeRows)), c.uri)
}

// Len implements Table.
func (c *cube) Len() int64 { return c.n }

// Kind implements Table: all fields are rasters.
func (c *cube) Kind(int) catalog.Kind { return catalog.Raster }

// Close implements Table. An array keeps no file open.
func (c *cube) Close() error { return nil }

// Value implements Table: it is an error, because an array has no metadata columns.
func (c *cube) Value(context.Context, int, int64) (catalog.Value, error) {
	return catalog.Value{}, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
		"an array has no metadata columns"), c.uri)
}

// Fingerprint implements Table. The fields and the meaning of the dimensions are in the hash of the
// spec, so it leaves them out.
func (c *cube) Fingerprint() string { return c.print }

// ID implements Table: it returns the coordinate along n.
func (c *cube) ID(_ context.Context, row int64) (string, error) { return c.id(row), nil }

// ScanIDs implements Table.
func (c *cube) ScanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	return c.each(ctx, func(row int64) error { return visit(row, c.id(row)) })
}

// Scan implements Table. The one column is the coordinate along n. Any other is fault.NotFound.
func (c *cube) Scan(
	ctx context.Context, column string, visit func(row int64, v catalog.Value) error,
) (catalog.Kind, error) {
	if !slices.Contains(c.axes, column) {
		return 0, fault.WithFile(fault.New(fault.NotFound, "column "+column, fault.NoOffset,
			"an array has only the coordinate along n"), c.uri)
	}
	return catalog.Int, c.each(ctx, func(row int64) error {
		return visit(row, catalog.Value{Int: c.coordinate(row)})
	})
}

// Extras implements Table.
func (c *cube) Extras() Extras { return Extras{Size: c.size, Coordinate: c.coordinate} }

// each visits all rows until an error.
func (c *cube) each(ctx context.Context, visit func(row int64) error) error {
	for row := range c.n {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := visit(row); err != nil {
			return err
		}
	}
	return nil
}

// size returns the size of all images of a field.
func (c *cube) size(field int) catalog.Size {
	g := &c.grids[field]
	return catalog.Size{Height: int32(g.Height), Width: int32(g.Width)}
}
