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
	cube
	array  *tiledb.Array
	Images []*tiledb.Images // the images of each field
	Lo     int64            // the number of the image of row 0 along n
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
	c := &Array{cube: cube{uri: array.URI(), print: array.Fingerprint()}, array: array}
	for i := range fields {
		images, err := c.field(&fields[i], src.Dims)
		if err != nil {
			return nil, fault.WithFile(InField(fields[i].Name, err), src.Source)
		}
		c.Images, c.grids = append(c.Images, images), append(c.grids, images.Grid())
	}
	// The array records which cells were written, so they are the same for all attributes.
	if len(c.Images) > 0 {
		lo, hi := c.Images[0].Written()
		c.Lo, c.n = lo, hi-lo
		c.id = func(int64) string { return "0" } // of an array without n
		c.coordinate = func(int64) int64 { return 0 }
		if d, typ := c.Images[0].Axis("n"), array.Schema.DimType; d >= 0 {
			c.axes = []string{"n", array.Schema.Dims[d].Name}
			c.id = func(row int64) string { return typ.FormatCoord(c.Images[0].Coord(lo + row)) }
			c.coordinate = func(row int64) int64 { return typ.Int(c.Images[0].Coord(lo + row)) }
		}
	}
	return c, c.check()
}

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

// Asset implements Table.
func (c *Array) Asset(_ context.Context, field int, row int64) (catalog.Asset, error) {
	return catalog.Asset{URI: c.array.URI(), Index: c.Images[field].Index(c.Lo + row)}, nil
}
