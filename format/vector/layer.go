package vector

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/texts"
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
	// Class says that without Column the class of objects is the column, if the format has one.
	Class bool
	// Words says that values of Column are strings, where a text does not say whether they are numbers.
	Words bool
	// Columns are the columns of Layer.Columns.
	Columns []string
	// Boxes says that only boxes are needed, so an object that has a box and an outline has the box.
	Boxes bool
	// OneImage says that a file whose shapes are in pixels of images is of one image.
	OneImage bool
	// Image is the column with the path of the image that each shape lies on, for shapes in pixels; "" for shapes on
	// the ground. It may also be the path, with the column in braces: "tiles/{ImageId}.tif".
	Image string
	// MaxShapes bounds the shapes of a file. The default is 1<<26, some 67 million, which take 2 GiB.
	MaxShapes int64
	// CacheBytes bounds the memory of shapes that were read. The default is 256 MiB: a million buildings of 130 bytes
	// fit twice.
	CacheBytes int64
	// Grow is called before the layer takes n bytes of memory more, and may refuse them. nil allows all.
	Grow func(ctx context.Context, n int64) error

	// Box says where the coordinates of objects lie, by what they are there: "x y w h" in "bbox", or each in a column
	// by its name or number. nil: as the format of the file has them. Image may then have several columns in braces,
	// also with the number of digits: "img{0:06}.jpg".
	Box map[string]string
	// Names makes columns of parts of others: "{image}_{class}" of "Image_Class".
	Names map[string]string

	headed bool // a text has columns, of which Names are
	// Keep reports whether an object is read, by what it has in WhereColumns; nil: all are.
	Keep         func(at func(column string) (text string, ok bool)) bool
	WhereColumns []string
	// Numbered says that values of Column that are whole numbers are positions in a list of classes.
	Numbered bool

	imageForm string // the path of an image with the column Image in braces; "" if the column has it
}

func (o *Options) defaults() {
	o.MaxShapes = cmp.Or(o.MaxShapes, 1<<26)
	o.CacheBytes = cmp.Or(o.CacheBytes, 256<<20)
	if o.Grow == nil {
		o.Grow = func(context.Context, int64) error { return nil }
	}
	if names := column.Names(o.Image); len(names) == 1 && o.Box == nil {
		o.Image, o.imageForm = names[0], o.Image
	}
}

// Layer is an open file of shapes. It is safe for concurrent use.
type Layer struct {
	// CRS is the CRS of the coordinates; nil if the file does not say.
	CRS *crs.CRS
	// Space says in what the coordinates are measured.
	Space Space
	// Values has the values of Options.Column, as int64, where booleans are 0 and 1, float64, or strings, see
	// tables.NewCoded; nil without a column.
	Values *tables.Vector
	// Ordinal says that Values are positions in a list of names that the file does not have.
	Ordinal bool
	// Listed are the classes that the file has a list of; some of them may have no shapes.
	Listed []string
	// Remarks are those on a file of labels.
	Remarks Remarks
	// Columns has the values of Options.Columns.
	Columns []*tables.Vector

	images *images // nil without Options.Image, unless the format names images
	tree   *boxtree.Tree
	n      int
	shapes shapeReader
	sum    string
}

// shapeReader reads the shapes of a file.
type shapeReader interface {
	shape(ctx context.Context, row int) (orb.Geometry, error)
	Close() error
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
	if err == nil && len(o.Names) > 0 && !o.headed {
		err = fault.New(fault.Unsupported, "names", "it is for columns of a text, which this file has none of")
	}
	if err != nil {
		_ = file.Close() // it was only read
		return nil, fault.WithFile(err, uri)
	}
	return layer, nil
}

// readers open files of many formats: of GeoParquet, of JSON, and those whose objects are where Options.Box says. The
// files that have them set them before main runs.
var readers struct {
	parquet, text func(ctx context.Context, r source.Reader, o *Options) (*Layer, error)
	placed        func(ctx context.Context, r source.Reader, o *Options, head []byte) (*Layer, error)
}

// beginOf returns a text without the blanks, and marks of records of JSON, that it begins with.
func beginOf(head []byte) []byte { return bytes.TrimLeft(head, " \t\r\n\x1e") }

// otherFormats are the names of formats that are known, but not read, by their first bytes, or by a tag of XML.
var otherFormats = []struct{ start, name string }{
	{"fgb", "FlatGeobuf"}, {"SQLite format 3", "GeoPackage"}, {"\x00\x00\x27\x0a", "Shapefile"}, {"<kml", "KML"},
	{"<gml:", "GML"},
}

// open detects the format of a file by its first bytes.
func open(ctx context.Context, r source.Reader, o *Options) (*Layer, error) {
	head, err := source.Read(ctx, r, 0, min(r.Size(), headBytes))
	if err != nil {
		return nil, err
	}
	head = bytes.TrimPrefix(head, []byte(texts.Mark))
	if o.Box != nil {
		return readers.placed(ctx, r, o, head)
	}
	text := beginOf(head)
	switch {
	case bytes.HasPrefix(text, []byte("<")) && bytes.Contains(text, []byte("<annotations")): // of many images
		return nil, fault.At(fault.Unsupported, "shapes", 0, "the file is as CVAT exports it, which is not read: "+
			"export COCO, or VOC or YOLO")
	case magic.Of(head).Class == magic.Parquet:
		return readers.parquet(ctx, r, o)
	case bytes.HasPrefix(text, []byte("{")):
		return readers.text(ctx, r, o)
	}
	for _, other := range otherFormats {
		if strings.HasPrefix(string(head), other.start) || other.start[0] == '<' &&
			bytes.HasPrefix(text, []byte("<")) && bytes.Contains(text, []byte(other.start)) {
			return nil, fault.At(fault.Unsupported, "shapes", 0, "%s is not read: in Python, give "+
				"chaski.Vector(geopandas.read_file(FILE)); elsewhere write it as GeoParquet, with "+
				"geopandas.read_file(A).to_parquet(B) or ogr2ogr -f Parquet B A", other.name)
		}
	}
	for _, f := range labelFormats {
		if f.begins(head) {
			return openLabels(ctx, r, o, f, head)
		}
	}
	if o.OneImage && len(bytes.TrimSpace(head)) == 0 && r.Size() <= headBytes { // no objects
		return newLabels(o, &format{}).layer(r.Size())
	}
	return nil, fault.At(fault.Unsupported, "shapes", 0, "the file is not GeoParquet, GeoJSON or COCO's JSON, nor "+
		"VOC's XML, text of DOTA or YOLO, JSON of LabelMe, Supervisely, Label Studio or VIA, an array of boxes "+
		"(.npy), or a CSV")
}

// openLabels opens a file of labels.
func openLabels(ctx context.Context, r source.Reader, o *Options, f *format, head []byte) (*Layer, error) {
	if !f.many && !o.OneImage {
		return nil, fault.At(fault.Unsupported, "shapes", 0, "%s has the labels of one image: give the files as "+
			`pattern="labels/{id}.txt"`, f.name)
	}
	objects := newLabels(o, f)
	if err := f.read(ctx, r, objects, head); err != nil {
		return nil, err
	}
	return objects.layer(r.Size())
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
	l.sum = l.hashColumns(hash)
	l.n, l.tree = len(boxes), boxtree.New(boxes)
}

// hashColumns adds the values of the shapes to a hash, and returns it.
func (l *Layer) hashColumns(hash digest.Digest) string {
	for _, values := range append([]*tables.Vector{l.Values}, l.Columns...) {
		if values != nil {
			hashValues(hash, values)
		}
	}
	if l.images != nil {
		hashStrings(hash, l.images.codes, l.images.paths, l.images.null)
	}
	return hash.Hex()
}

// Bounds returns the box around all shapes on the ground, and false without shapes.
func (l *Layer) Bounds() (minX, minY, maxX, maxY float64, ok bool) {
	if l.tree == nil {
		return 0, 0, 0, 0, false
	}
	b := l.tree.Bounds()
	return float64(b[0]), float64(b[1]), float64(b[2]), float64(b[3]), b[0] <= b[2]
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

// ShapeIn returns the shape with a number in an image of a height in pixels, which masks of runs may leave to it.
func (l *Layer) ShapeIn(ctx context.Context, row uint32, height int) (orb.Geometry, error) {
	if objects, ok := l.shapes.(*shapeList); ok {
		return objects.shapeIn(int(row), height)
	}
	return l.Shape(ctx, row)
}

// Far returns the first shape of a file of labels that has a coordinate far from all shares of an image, and the
// coordinate.
func (l *Layer) Far() (row uint32, x float64, found bool) {
	if objects, ok := l.shapes.(*shapeList); ok {
		return objects.far()
	}
	return 0, 0, false
}

// LikeShares reports whether all coordinates of a file of labels are from 0 to 1, and not all of them whole numbers.
func (l *Layer) LikeShares() bool {
	objects, ok := l.shapes.(*shapeList)
	return ok && objects.likeShares()
}

// Close closes the file.
func (l *Layer) Close() error { return l.shapes.Close() }
