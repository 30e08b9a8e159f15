package tiledb

import (
	"cmp"
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

// Kind is the kind of the paths of arrays.
var Kind = store.Register(kind{})

type kind struct{}

// String implements store.Kind.
func (kind) String() string { return "a TileDB array" }

// Is implements store.Kind.
func (kind) Is(ctx context.Context, o source.Opener, p source.Path) (bool, error) {
	return Is(ctx, o, p)
}

// Times implements store.Times.
func (kind) Times() {}

// Usage implements store.Several.
func (kind) Usage(string) string { return "whose boxes 'chaski array' reads; loaders read its images" }

// Open implements store.Arrays.
func (kind) Open(ctx context.Context, o source.Opener, uri string, opt store.Options) (store.Group, error) {
	if opt.Key == nil {
		var err error
		if opt.Key, err = store.KeyFromEnv(); err != nil {
			return nil, err
		}
	}
	a, err := Open(ctx, o, uri, Options{Key: opt.Key, MaxTile: opt.MaxChunk, MaxResult: opt.MaxChunk,
		Since: opt.Since, Until: opt.Until})
	if err != nil {
		return nil, fault.WithFile(err, uri)
	}
	return group{a}, nil
}

// Attributes implements store.Attributed.
func (kind) Attributes(g store.Group) (names []string) {
	for _, attribute := range g.(group).Schema.Attrs {
		names = append(names, attribute.Name)
	}
	return names
}

// Verify implements store.Verifier: it decodes every tile of every fragment.
func (kind) Verify(ctx context.Context, c *store.Check, path string) error {
	c.Arrays++
	array, err := Open(ctx, c.Opener, path, Options{Key: c.Key, MaxTile: int64(c.MaxChunk)})
	if err != nil {
		return err
	}
	checked, err := array.Verify(ctx)
	c.Chunks += checked.Tiles
	c.Bytes += checked.Bytes
	return err
}

// group is an array as store.Group, whose arrays are its attributes.
type group struct{ *Array }

// Raster implements store.Group: it returns the images along the axis n that were written of the attribute that name
// names, else of the one with the field's name, else of the only one.
func (g group) Raster(_ context.Context, field, name, dims string) (store.Raster, error) {
	schema := g.Schema
	attr := schema.Attr(cmp.Or(name, field))
	if attr < 0 && name == "" && len(schema.Attrs) == 1 {
		attr = 0
	}
	if attr < 0 {
		names := kind{}.Attributes(g)
		if name != "" {
			return nil, fault.New(fault.NotFound, "array schema", "no attribute %q; there are %q", name, names)
		}
		return nil, fault.New(fault.NotFound, "array schema", "name the attribute as column; there are %q", names)
	}
	images, err := g.Images(attr, dims)
	if err != nil {
		return nil, err
	}
	begin, end := images.Written() // the same for all attributes
	return raster{images, begin, end}, nil
}

// IsLabel implements store.Group.
func (group) IsLabel(context.Context, string, string) bool { return false }

// Labels implements store.Group.
func (g group) Labels(_ context.Context, name string) (store.Labels, error) {
	return nil, fault.WithFile(fault.New(fault.NotFound, "column "+name, "an array has only the coordinate along n"),
		g.URI())
}

// Arrays implements store.Group.
func (group) Arrays(context.Context) ([]string, error) {
	return nil, fault.New(fault.NotFound, "array schema", "an array has attributes, not files: name one as column")
}

// Text implements store.Group.
func (group) Text(context.Context, string) string { return "" }

// Attribute implements store.Group.
func (group) Attribute(context.Context, string, string) (v column.Value, kind column.Kind) {
	return v, 0
}

// Held implements store.Group.
func (group) Held() (int64, error) { return 0, nil }

// Describe implements store.Group (*Info): from the schema and the footers of the fragments, without reading tiles.
func (g group) Describe(_ context.Context, path string) (any, error) {
	return infoOf(path, g.Array), nil
}

// raster is the images of an attribute that were written as store.Raster.
type raster struct {
	*Images
	begin, end int64
}

// Len implements store.Raster.
func (r raster) Len() int64 { return r.end - r.begin }

// HasN implements store.Raster.
func (r raster) HasN() bool { return r.Axis() != "" }

// Index implements store.Raster.
func (r raster) Index(i int64) *chunk.Index { return r.Images.Index(r.begin + i) }

// About implements store.Raster. The array has a fingerprint of its own.
func (r raster) About() store.About { return store.About{URI: r.a.uri} }

// Place implements store.Raster.
func (raster) Place(context.Context) (epsg int, transform *[6]float64) { return 0, nil }

// Axis implements store.Coordinated.
func (r raster) Axis() string {
	if n := r.N(); n >= 0 {
		return r.a.Schema.Dims[n].Name
	}
	return ""
}

// Coordinate implements store.Coordinated.
func (r raster) Coordinate(i int64) (number int64, text string) {
	if r.N() < 0 {
		return 0, "0"
	}
	typ, coordinate := r.a.Schema.DimType, r.Coord(r.begin+i)
	return typ.Int(coordinate), typ.FormatCoord(coordinate)
}
