package rows

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// Array is a dense TileDB array as a dataset. Its rows are the images along the axis n that were
// written, its fields are attributes.
type Array struct {
	array  *tiledb.Array
	Images []*tiledb.Images // the images of each field
	Lo     int64            // the number of the image of row 0 along n
	n      int64            // the number of rows
}

// OpenArrayAt opens the array at path, as it was at a timestamp (nil for now). A path outside of
// o.Roots is an error.
func OpenArrayAt(ctx context.Context, path string, at *spec.Timestamp, o resources.Options) (*tiledb.Array, error) {
	path, err := o.Resolve(path)
	if err != nil {
		return nil, err
	}
	key := o.ArrayKey
	if key == nil {
		if key, err = tiledb.KeyFromEnv(); err != nil {
			return nil, err
		}
	}
	opened := tiledb.Options{Key: key, MaxTile: int64(o.MaxChunkBytes), MaxResult: int64(o.MaxChunkBytes)}
	if at != nil {
		opened.Since, opened.Until = at[0], at[1]
	}
	a, err := tiledb.Open(ctx, o.Opener, path, opened)
	return a, fault.WithFile(err, path)
}

// openCube opens an array as a dataset with one attribute for each field.
func openCube(ctx context.Context, src *spec.Source, fields []spec.Field, o resources.Options) (*Array, error) {
	array, err := OpenArrayAt(ctx, src.Source, src.Timestamp, o)
	if err != nil {
		return nil, err
	}
	c := &Array{array: array}
	for i := range fields {
		images, err := c.field(&fields[i], src.Dims)
		if err != nil {
			return nil, fault.WithFile(InField(fields[i].Name, err), src.Source)
		}
		c.Images = append(c.Images, images)
	}
	// The array records which cells were written, so they are the same for all attributes.
	if len(c.Images) > 0 {
		lo, hi := c.Images[0].Written()
		c.Lo, c.n = lo, hi-lo
	}
	if c.n > maxCubeRows {
		return nil, fault.WithFile(fault.New(fault.Limit, "dataset", fault.NoOffset,
			"%d rows, at most %d", c.n, int64(maxCubeRows)), src.Source)
	}
	return c, nil
}

// maxCubeRows bounds the rows of an array, because selected rows are numbered in uint32.
const maxCubeRows = 1 << 32

// field returns the images of a field's attribute: the one that column names, else the one with the
// field's name, else the only one.
func (c *Array) field(f *spec.Field, dims string) (*tiledb.Images, error) {
	schema := c.array.Schema
	if f.Pattern != "" || f.Blob != "" {
		return nil, fault.New(fault.NotFound, "array schema", fault.NoOffset,
			"an array has attributes, not files: name one as column")
	}
	attr := schema.Attr(f.Column)
	switch {
	case f.Column != "":
	case schema.Attr(f.Name) >= 0:
		attr = schema.Attr(f.Name)
	case len(schema.Attrs) == 1:
		attr = 0
	}
	if attr < 0 {
		names := make([]string, len(schema.Attrs))
		for i := range schema.Attrs {
			names[i] = schema.Attrs[i].Name
		}
		if f.Column != "" {
			return nil, fault.New(fault.NotFound, "array schema", fault.NoOffset,
				"no attribute %q; there are %q", f.Column, names)
		}
		return nil, fault.New(fault.NotFound, "array schema", fault.NoOffset,
			"name the attribute as column; there are %q", names)
	}
	return c.array.Images(attr, dims)
}

// Len implements Table.
func (c *Array) Len() int64 { return c.n }

// Kind implements Table: all fields are rasters.
func (c *Array) Kind(int) catalog.Kind { return catalog.Raster }

// Close implements Table. An array keeps no file open.
func (c *Array) Close() error { return nil }

// Fingerprint implements Table. The fields and the meaning of the dimensions are in the hash of the
// spec, so it leaves them out.
func (c *Array) Fingerprint() string { return c.array.Fingerprint() }

// Asset implements Table.
func (c *Array) Asset(_ context.Context, field int, row int64) (catalog.Asset, error) {
	return catalog.Asset{URI: c.array.URI(), Index: c.Images[field].Index(c.Lo + row)}, nil
}

// Value implements Table: it is an error, because an array has no metadata columns.
func (c *Array) Value(context.Context, int, int64) (catalog.Value, error) {
	return catalog.Value{}, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
		"an array has no metadata columns"), c.array.URI())
}

// ID implements Table: it returns the coordinate along n.
func (c *Array) ID(_ context.Context, row int64) (string, error) { return c.id(row), nil }

// id returns the coordinate along n as a string, "0" for an array without n.
func (c *Array) id(row int64) string {
	d := c.Images[0].Axis("n")
	if d < 0 {
		return "0"
	}
	return c.array.Schema.DimType.FormatCoord(c.Images[0].Coord(c.Lo + row))
}

// coordinate returns a row's coordinate along n, 0 for an array without n.
func (c *Array) coordinate(row int64) int64 {
	d := c.Images[0].Axis("n")
	if d < 0 {
		return 0
	}
	return c.array.Schema.DimType.Int(c.Images[0].Coord(c.Lo + row))
}

// ScanIDs implements Table.
func (c *Array) ScanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	return c.each(ctx, func(row int64) error { return visit(row, c.id(row)) })
}

// Scan implements Table. The one column of an array is the coordinate along n, named "n" or as
// the dimension. Any other is fault.NotFound.
func (c *Array) Scan(
	ctx context.Context, column string, visit func(row int64, v catalog.Value) error,
) (catalog.Kind, error) {
	s, d := c.array.Schema, c.Images[0].Axis("n")
	if d < 0 || column != "n" && column != s.Dims[d].Name {
		return 0, fault.WithFile(fault.New(fault.NotFound, "column "+column, fault.NoOffset,
			"an array has only the coordinate along n"), c.array.URI())
	}
	return catalog.Int, c.each(ctx, func(row int64) error {
		return visit(row, catalog.Value{Int: c.coordinate(row)})
	})
}

// each visits all rows until an error.
func (c *Array) each(ctx context.Context, visit func(row int64) error) error {
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

// Extras implements Table.
func (c *Array) Extras() Extras { return Extras{Size: c.size, Coordinate: c.coordinate} }

// size returns the size of all images of a field.
func (c *Array) size(field int) catalog.Size {
	g := c.Images[field].Grid()
	return catalog.Size{Height: int32(g.Height), Width: int32(g.Width)}
}
