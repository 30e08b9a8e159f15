// Package cube opens and describes TileDB arrays: it makes datasets of the images of dense ones.
package cube

import (
	"cmp"
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/stores/images"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/tiledb"
)

func init() {
	rows.Register(tiledb.Kind, rows.Store{Open: open})
	survey.Register(tiledb.Kind, describe)
}

// OpenAt opens the array at path, as it was at a timestamp (nil for now). A path outside of
// o.Roots is an error.
func OpenAt(ctx context.Context, path string, at *spec.Timestamp, o resources.Options) (*tiledb.Array, error) {
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

// open opens a dense TileDB array as a dataset with one attribute for each field. Its rows are the images along the
// axis n that were written.
func open(ctx context.Context, src *spec.Source, fields []spec.Field, o resources.Options) (*rows.Table, error) {
	array, err := OpenAt(ctx, src.Source, src.Timestamp, o)
	if err != nil {
		return nil, err
	}
	attrs := make([]*tiledb.Images, len(fields))
	for i := range fields {
		if attrs[i], err = attributeOf(array, &fields[i], cmp.Or(fields[i].Dims, src.Dims)); err != nil {
			return nil, fault.WithFile(rows.InField(fields[i].Name, err), src.Source)
		}
	}
	// The fields and the meaning of the dimensions are in the hash of the spec, so the fingerprint leaves them out.
	found := images.Images{URI: array.URI(), Noun: "an array", Hash: array.Fingerprint()}
	if len(attrs) == 0 {
		return found.Table(0)
	}
	// The array records which cells were written, so they are the same for all attributes.
	first, typ := attrs[0], array.Schema.DimType
	begin, hi := first.Written()
	axis := first.N()
	found.N = hi - begin
	found.IsN = func(column string) bool {
		return axis >= 0 && (column == "n" || column == array.Schema.Dims[axis].Name)
	}
	found.Coordinate = func(row int64) int64 {
		if axis < 0 {
			return 0
		}
		return typ.Int(first.Coord(begin + row))
	}
	found.Name = func(row int64) string {
		if axis < 0 {
			return "0"
		}
		return typ.FormatCoord(first.Coord(begin + row))
	}
	found.Grid = func(field int) chunk.Index { return attrs[field].Grid() }
	found.Raster = func(field int, row int64) catalog.Asset {
		return catalog.Asset{URI: array.URI(), Index: attrs[field].Index(begin + row)}
	}
	return found.Table(len(fields))
}

// attributeOf returns the images of a field's attribute: the one that column names, else the one with the
// field's name, else the only one.
func attributeOf(array *tiledb.Array, f *spec.Field, dims string) (*tiledb.Images, error) {
	schema := array.Schema
	if f.Pattern != "" || f.Blob != "" {
		return nil, fault.New(fault.NotFound, "array schema", "an array has attributes, not files: name one as column")
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
			return nil, fault.New(fault.NotFound, "array schema", "no attribute %q; there are %q", f.Column, names)
		}
		return nil, fault.New(fault.NotFound, "array schema", "name the attribute as column; there are %q", names)
	}
	return array.Images(attr, dims)
}
