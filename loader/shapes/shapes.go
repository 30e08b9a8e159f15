// Package shapes has the fields of shapes of a dataset: polygons, lines and points that are drawn into windows of
// rasters, or cut to them. It reads no file: package loader/vectors does, where a program imports that.
package shapes

import (
	"context"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Field is a compiled field of shapes.
type Field struct {
	*Traits
	Files
}

// Traits are what a field of shapes has in batches.
type Traits struct {
	spec.Vector
	Name string
	To   chunk.DType   // of the elements
	More []chunk.DType // of the elements of Vector.Columns
}

// Ragged reports whether the field has boxes or polygons, not pixels.
func (t *Traits) Ragged() bool {
	return t.Vector.Kind == spec.BoxVector || t.Vector.Kind == spec.PolygonVector
}

// Files are the shapes of a field: of one file, or of a file for each row.
type Files interface {
	// Names returns the classes that the files have, sorted, if the spec gives none: Number must then be called with
	// the classes of all sources.
	Names() []string
	Number(classes []string) error
	// InPixels reports whether the shapes of the one file are in pixels of images.
	InPixels() bool
	// Own tells the file of shapes in pixels which images there are: the paths of a column in some rows, nil for all.
	Own(ctx context.Context, t *rows.Table, column int, some []uint32) error
	// Fingerprint names the content of the one file.
	Fingerprint() string
	// Picture returns the shapes near a window of an asset in a row, which has h by w elements. An asset without a
	// known place is unsupported.
	Picture(ctx context.Context, row int64, a *catalog.Asset, win shuffle.Box, h, w int,
		turn shuffle.Element) (Picture, error)
	// Placeable returns an error if shapes cannot be drawn on an asset in a row. It opens no file.
	Placeable(ctx context.Context, row int64, a *catalog.Asset) error
	// Check reads all shapes that lie on an asset in a row.
	Check(ctx context.Context, row int64, a *catalog.Asset) error
	Close() error
}

// Picture is the grid that shapes are drawn into: a window of an image, in the size of the tensor.
type Picture interface {
	// Draw draws the shapes into a tensor of the window's pixels, which are 0.
	Draw(ctx context.Context, dst []byte) error
	// Cut returns the shapes, cut to the window, in the order of the file. They take at most bound bytes.
	Cut(ctx context.Context, bound int64) (Cut, error)
}

// Cut holds the boxes or polygons of one row of a batch: how many there are is known when they are read.
type Cut struct {
	Coords []float32 // BoxWidth of a box, VertexWidth of a vertex
	Rings  []int32   // of polygons, RingWidth numbers of each ring
	Values []byte    // an element of each shape
	More   [][]byte  // the same of each of Vector.Columns
}

// Bytes returns the bytes of the row.
func (c *Cut) Bytes() int64 {
	n := int64(4*len(c.Coords) + 4*len(c.Rings) + len(c.Values))
	for _, column := range c.More {
		n += int64(len(column))
	}
	return n
}

// How many numbers there are of each part of a shape.
const (
	BoxWidth    = 4 // least x and y, greatest x and y
	VertexWidth = 2 // x and y
	RingWidth   = 4 // number of the shape in its row, of the polygon in the shape, of vertices, 1 for a hole
)

// Reader reads files of shapes.
type Reader struct {
	// Open opens a field, whose shapes are drawn on rasters of t, and its file unless there is one for each row. The
	// paths of these are the values of a column of t.
	Open func(ctx context.Context, f spec.Field, t *rows.Table, column int, o resources.Options) (*Field, error)
	// Polygons returns the polygons of a file and their CRS. Both are nil if the file does not say which CRS.
	Polygons func(ctx context.Context, o source.Opener, path string) ([]orb.Polygon, *crs.CRS, error)
}

var reader *Reader

// Register says how files of shapes are read. The package that does it calls Register when the program starts.
func Register(r *Reader) { reader = r }

// Open is Reader.Open.
func Open(ctx context.Context, f spec.Field, t *rows.Table, column int, o resources.Options) (*Field, error) {
	if reader == nil {
		return nil, notImported("vector")
	}
	return reader.Open(ctx, f, t, column, o)
}

// Polygons is Reader.Polygons.
func Polygons(ctx context.Context, o source.Opener, path string) ([]orb.Polygon, *crs.CRS, error) {
	if reader == nil {
		return nil, nil, notImported("shapes")
	}
	return reader.Polygons(ctx, o, path)
}

func notImported(part string) error { return fault.NotImported(part, "reads shapes", "loader/vectors") }
