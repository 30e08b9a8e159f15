package vector

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/boxtree"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

// Options select the part of a file to read, and bound the memory of a layer. The zero value selects the defaults.
type Options struct {
	// Column is the column of Values; "" for none.
	Column string
	// Image is the column with the path of the image that each shape lies on, for shapes in pixels; "" for shapes on
	// the ground.
	Image string
	// MaxShapes bounds the shapes of a file. The default is 1<<26, some 67 million, which take 2 GiB.
	MaxShapes int64
	// CacheBytes bounds the memory of shapes that were read. The default is 256 MiB: a million buildings of 130 bytes
	// fit twice.
	CacheBytes int64
	// Grow is called before the layer takes n bytes of memory more, and may refuse them. nil allows all.
	Grow func(ctx context.Context, n int64) error
}

func (o *Options) defaults() {
	o.MaxShapes = cmp.Or(o.MaxShapes, 1<<26)
	o.CacheBytes = cmp.Or(o.CacheBytes, 256<<20)
	if o.Grow == nil {
		o.Grow = func(context.Context, int64) error { return nil }
	}
}

// Layer is an open file of shapes. It is safe for concurrent use.
type Layer struct {
	// CRS is the CRS of the coordinates; nil if the file does not say.
	CRS *crs.CRS
	// Values has the values of Options.Column; nil without one.
	Values *Values

	images *images // nil without Options.Image
	tree   *boxtree.Tree
	n      int
	shapes shapes
	sum    string
}

// shapes reads the shapes of a file.
type shapes interface {
	shape(ctx context.Context, row int) (orb.Geometry, error)
	Close() error
}

// Values has the values of one column, one for each shape.
type Values struct {
	// Ints are whole numbers; nil for other columns. Booleans are 0 and 1.
	Ints []int64
	// Floats are numbers; nil for other columns.
	Floats []float64
	// Codes are indices in Names, for strings; nil for other columns.
	Codes []uint32
	Names []string

	null []bool // nil: none
}

// Null reports whether a shape has no value.
func (v *Values) Null(row int) bool { return v.null != nil && v.null[row] }

// AllNull reports whether no shape has a value.
func (v *Values) AllNull() bool {
	n := len(v.Ints) + len(v.Floats) + len(v.Codes) // two are nil
	return n == 0 || v.null != nil && !slices.Contains(v.null, false)
}

// Open opens a file of shapes by its URI. It reads all boxes and the values of the column. Errors have the file's name;
// a file of another format is fault.Unsupported.
func Open(ctx context.Context, opener source.Opener, uri string, o Options) (*Layer, error) {
	o.defaults()
	file, err := opener.Open(ctx, uri)
	if err != nil {
		return nil, fault.WithFile(err, uri)
	}
	layer, err := open(ctx, file, &o)
	if err != nil {
		_ = file.Close() // it was only read
		return nil, fault.WithFile(err, uri)
	}
	return layer, nil
}

// otherFormats are the names of formats that are known, but not read, by their first bytes.
var otherFormats = []struct{ start, name string }{
	{"fgb", "FlatGeobuf"}, {"SQLite format 3", "GeoPackage"}, {"\x00\x00\x27\x0a", "Shapefile"},
}

// open detects the format of a file by its first bytes.
func open(ctx context.Context, r source.Reader, o *Options) (*Layer, error) {
	head := make([]byte, min(r.Size(), 16))
	if err := r.ReadAt(ctx, head, 0); err != nil {
		return nil, err
	}
	switch {
	case magic.Of(head).Class == magic.Parquet:
		return openParquet(ctx, r, o)
	case slices.Contains([]byte("{ \t\r\n\xef"), append(head, 0)[0]):
		return openText(ctx, r, o)
	}
	for _, other := range otherFormats {
		if strings.HasPrefix(string(head), other.start) {
			return nil, fault.New(fault.Unsupported, "shapes", 0, "%s is not read: in Python, give "+
				"chaski.Vector(geopandas.read_file(FILE)); elsewhere write it as GeoParquet, with "+
				"geopandas.read_file(A).to_parquet(B) or ogr2ogr -f Parquet B A", other.name)
		}
	}
	return nil, fault.New(fault.Unsupported, "shapes", 0, "the file is not GeoParquet or GeoJSON")
}

// index makes the layer of shapes from their boxes. size is the size of the file in bytes.
func (l *Layer) index(boxes []boxtree.Box, size int64) {
	hash := digest.New()
	code := 0
	if l.CRS != nil {
		code = l.CRS.Code()
	}
	_, _ = fmt.Fprintln(hash, len(boxes), size, code)
	for i := range boxes {
		for _, side := range boxes[i] {
			hash.Number(uint64(math.Float32bits(side)))
		}
	}
	if l.Values != nil {
		l.Values.hash(hash)
	}
	if l.images != nil {
		l.images.values.hash(hash)
	}
	l.sum = hash.Hex()
	l.n, l.tree = len(boxes), boxtree.New(boxes)
}

// hash adds the values to a hash.
func (v *Values) hash(h digest.Digest) {
	for i := range v.Ints {
		h.Number(uint64(v.Ints[i]))
	}
	for i := range v.Floats {
		h.Number(math.Float64bits(v.Floats[i]))
	}
	for i := range v.Codes {
		h.Number(uint64(v.Codes[i]))
	}
	_, _ = fmt.Fprintf(h, "%q", v.Names)
	for i, null := range v.null {
		if null {
			h.Number(uint64(i))
		}
	}
}

// Len returns the number of shapes.
func (l *Layer) Len() int { return l.n }

// Fingerprint returns a hash of the number of shapes, their boxes to 24 bits, their values, the CRS and the size of
// the file.
func (l *Layer) Fingerprint() string { return l.sum }

// Search returns the numbers of the shapes whose boxes may meet a box, in the order of the file. On a map that repeats
// after a width (0: it does not), it also finds those one turn away.
func (l *Layer) Search(minX, minY, maxX, maxY, width float64) []uint32 {
	box := boxtree.Around(minX, minY, maxX, maxY)
	rows := l.tree.Search(nil, &box)
	if width > 0 {
		for _, turn := range []float64{-width, width} {
			box = boxtree.Around(minX+turn, minY, maxX+turn, maxY)
			rows = l.tree.Search(rows, &box)
		}
	}
	// A wide shape may be found in several turns, but must be listed once.
	slices.Sort(rows)
	return slices.Compact(rows)
}

// Shape returns the shape with a number: nil if the file has none there. It has the types of package wkb.
func (l *Layer) Shape(ctx context.Context, row uint32) (orb.Geometry, error) {
	return l.shapes.shape(ctx, int(row))
}

// Close closes the file.
func (l *Layer) Close() error { return l.shapes.Close() }
