// Package vectors draws the shapes of a file into windows of rasters, or cuts them to the windows. It reads the fields
// of package shapes: it finds the shapes that lie in a window, converts them to the CRS of the raster, and knows the
// value that each of them is drawn with. It does not know batches.
package vectors

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/vector"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/shapes"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

func init() { shapes.Register(&shapes.Reader{Open: open, Polygons: polygons}) }

// field has the shapes of one file, or of a file for each row.
type field struct {
	shapes.Traits
	crs  *crs.CRS    // of Vector.CRS, or nil
	one  *file       // nil with Pattern
	each *shapeFiles // nil without Pattern

	logger  *slog.Logger
	remarks sync.Map // those that the log has
	// image returns what the dataset calls the image of a row; nil before Own.
	image  func(ctx context.Context, row int64) (catalog.Value, error)
	keys   map[int64]string // of the samples that the file names by their keys alone
	beside elsewhere

	// names are the classes that open found, sorted, if Vector.Classes has none.
	names []string
}

// file is an open file of shapes.
type file struct {
	path    string
	layer   *vector.Layer
	from    *crs.CRS // of the shapes
	space   vector.Space
	codes   []uint32 // of each shape the position of its class in class
	class   []int64  // the value of each class, 0 if it has none; nil without classes
	targets sync.Map // from EPSG code to *target
}

// open is shapes.Reader.Open.
func open(ctx context.Context, f spec.Field, t *rows.Table, column int, o resources.Options) (*shapes.Field, error) {
	field := &field{Traits: shapes.Traits{Vector: *f.Vector, Name: f.Name}, logger: o.Logger}
	field.beside.images = map[string]bool{}
	field.expect(t.N)
	if err := field.open(ctx, t, column, o); err != nil {
		return nil, err
	}
	return &shapes.Field{Traits: &field.Traits, Files: field}, nil
}

// open opens the file of a field, or prepares the reading of a file for each row.
func (v *field) open(ctx context.Context, t *rows.Table, column int, o resources.Options) error {
	arrays := fault.New(fault.Unsupported, "dataset", "images of arrays have no names, by which shapes in pixels find "+
		"them: shapes on the ground are for arrays that say where they lie")
	if t.Array && v.Pattern != "" {
		return arrays
	}
	if v.CRS != "" && v.CRS != spec.PixelSpace && v.CRS != spec.ShareSpace {
		var ok bool
		if v.crs, ok = crs.ByName(v.CRS); !ok {
			return fmt.Errorf("vector: crs is %q: it is not known", v.CRS)
		}
	}
	if v.Pattern != "" {
		return v.openFiles(ctx, t, column, o)
	}
	layer, err := v.openOne(ctx, t, o)
	if err != nil {
		return err
	}
	v.one = &file{path: v.Path, layer: layer}
	var found survey
	if err = found.add(layer); err == nil {
		if err = v.settle(&found); err == nil {
			err = v.place(v.one)
		}
	}
	if err == nil && v.names == nil {
		err = v.number(v.one)
	}
	if err == nil && t.Array && v.InPixels() {
		err = arrays
	}
	if err == nil && v.one.space == vector.Ground && v.Missing != "" {
		err = fmt.Errorf("vector: missing is %q: it is for a pattern, or shapes in the pixels of images", v.Missing)
	}
	if err != nil {
		_ = layer.Close() // it was only read
		return fault.WithFile(err, v.Path)
	}
	return nil
}

// openOne opens the file of all images, or the shapes in the table.
func (v *field) openOne(ctx context.Context, t *rows.Table, o resources.Options) (*vector.Layer, error) {
	read, err := v.options(budget.Grow)
	if err != nil {
		return nil, err
	}
	if !v.OwnTable() {
		path, err := o.Resolve(v.Path)
		if err != nil {
			return nil, err
		}
		return vector.Open(ctx, o.Opener, path, read)
	}
	table, err := t.Data(ctx)
	switch {
	case err != nil:
		return nil, err
	case table == nil:
		return nil, fault.New(fault.Unsupported, "box", "the dataset has no table of its own: path or pattern names "+
			"the file with the shapes")
	}
	return vector.OfRows(ctx, table, read)
}

// options returns how a file of the field is read.
func (v *field) options(grow func(context.Context, int64) error) (o vector.Options, err error) {
	// Of places, which do not say whether values are names: names of the numbers 0, 1 and so on, unless they are some
	// of these numbers.
	whole := func(class string) bool { _, err := strconv.ParseInt(class, 10, 64); return err == nil }
	numbered := v.Box != nil && slices.ContainsFunc(v.Classes, func(class string) bool { return !whole(class) })
	o = vector.Options{Column: v.Column, Class: v.Vector.Kind != spec.InstanceVector, Columns: v.Columns,
		Words: v.Classes != nil && !numbered, Image: v.Image, Boxes: v.Vector.Kind == spec.BoxVector,
		OneImage: v.Pattern != "" && v.Image == "", Grow: grow, Box: v.Box, Names: v.Vector.Names, Numbered: numbered}
	o.Keep, o.WhereColumns, err = v.Keep()
	return o, err
}

func (v *field) Close() error {
	if v.one == nil {
		return nil
	}
	return v.one.layer.Close()
}

func (v *field) InPixels() bool { return v.one != nil && v.one.space != vector.Ground }

func (v *field) Own(ctx context.Context, t *rows.Table, column int, some []uint32) error {
	count := t.N
	if some != nil {
		count = int64(len(some))
	}
	v.expect(count)
	if !v.InPixels() || v.OwnTable() {
		if v.one != nil && v.one.layer.Len() == 0 && count > 0 {
			v.log(v.Path, vector.Remarks{noShapes: {}})
		}
		return nil
	}
	first := ""
	raster := &t.Fields[column]
	v.image = raster.Value
	if v.one.layer.NamesCells() {
		v.image = func(ctx context.Context, row int64) (catalog.Value, error) {
			if cell, ok := raster.Cell(row); ok {
				return catalog.Value{Text: []byte(cell)}, nil
			}
			return raster.Value(ctx, row)
		}
	}
	ownAll := func() (vector.Owned, error) {
		return v.one.layer.Own(func(yield func(vector.Sample, error) bool) {
			for i := range count {
				row := i
				if some != nil {
					row = int64(some[i])
				}
				path, err := v.pathOf(ctx, row)
				if path == "" && err == nil {
					continue
				}
				if first = cmp.Or(first, path); !yield(vector.Sample{Key: v.keys[row], URI: path}, err) {
					return
				}
			}
		})
	}
	fit, err := ownAll()
	if err == nil && fit.Unnamed != "" && fit.Others > 0 {
		if err = v.byKeys(ctx, t); err == nil && len(v.keys) > 0 {
			fit, err = ownAll()
		}
	}
	switch {
	case err != nil || fit.Images == 0:
	case fit.Named == 0 && fit.Other != "":
		v.log(v.Path, vector.Remarks{otherNames: {First: fit.Other + ", and not " + first}})
	case fit.Shapes == 0:
		v.log(v.Path, vector.Remarks{noShapes: {}})
	case fit.Unnamed != "" && fit.Others > 0 && v.Missing == spec.MissingEmpty:
		names := fmt.Sprintf("%s of %d, and not %s of %d", fit.Other, fit.Others, fit.Unnamed, fit.Images-fit.Named)
		v.log(v.Path, vector.Remarks{someNames: {First: names}})
	}
	return fault.WithFile(err, v.Path)
}

func (v *field) Fingerprint() string { return v.one.layer.Fingerprint() }

func (v *field) Names() []string { return v.names }

func (v *field) Number(classes []string) error {
	if v.Classes, v.names = classes, nil; v.one == nil {
		return nil
	}
	return fault.WithFile(v.number(v.one), v.Path)
}

// settle sets the dtypes of elements, and the classes, by what files have.
func (v *field) settle(s *survey) (err error) {
	dtype := v.DType
	if v.Classes == nil && s.strings && v.Vector.Kind != spec.InstanceVector {
		v.names = s.classes(v.Unnamed)
	}
	switch {
	case dtype != "":
	case v.Vector.Kind == spec.InstanceVector:
		dtype = "int32"
	case v.Column == "" || v.Classes != nil || v.names != nil:
		dtype = v.small()
	case s.floats && v.Pattern == "":
		dtype = "float32"
	default:
		dtype = "int64"
	}
	if len(v.names) > spec.MaxClasses {
		return fault.New(fault.Limit, "column "+v.Column, "over %d different strings: give classes", spec.MaxClasses)
	}
	for i := range v.Columns {
		to := chunk.Int64
		if s.more[i].floats {
			to = chunk.Float32
		}
		v.More = append(v.More, to)
	}
	v.To, err = chunk.ParseDType(dtype)
	return err
}

// otherOrder says how numbers in another order than the one of a format are read.
const otherOrder = "The order of YOLO's text is %s. Of numbers in another order, or in pixels, box says where each " +
	`of them lies, as {"x0 y0 x1 y1": [0, 1, 2, 3]}, and column where the class`

// place finds out where the shapes of a file lie.
func (v *field) place(f *file) error {
	layer := f.layer
	switch {
	case v.CRS == spec.PixelSpace:
		f.space = vector.Pixels
	case v.CRS == spec.ShareSpace:
		f.space = vector.Shares
	case layer.Space == vector.Ground && v.Image != "":
		f.space = vector.Pixels
	default:
		f.space = layer.Space
	}
	if f.space == vector.Shares {
		if row, x, far := layer.Far(); far {
			return fault.New(fault.Corrupt, fmt.Sprintf("shape %d", row), "it has the coordinate %v, and shares of an "+
				"image are from 0 to 1. "+otherOrder, x, vector.YOLOOrder)
		}
	}
	if f.space == vector.Pixels && layer.Space == vector.Shares {
		return fault.New(fault.Unsupported, "shapes", "crs is %q, and the file does not say where its numbers are "+
			"pixels. "+otherOrder, v.CRS, vector.YOLOOrder)
	}
	if f.space == vector.Pixels && v.CRS == "" && layer.LikeShares() {
		return fault.New(fault.Unsupported, "shapes", "all coordinates are from 0 to 1: say crs=%q if "+
			"they are shares of the image, or crs=%q", spec.ShareSpace, spec.PixelSpace)
	}
	if f.space != vector.Ground {
		if v.crs != nil {
			return fmt.Errorf("vector: crs is %q: shapes of this file are in pixels of images", v.CRS)
		}
		return nil
	}
	f.from = cmp.Or(v.crs, layer.CRS)
	if f.from == nil {
		return fault.New(fault.Unsupported, "CRS", `the file has none: give it as "crs"`)
	}
	if row, far := beyond(layer); far && f.from.Geographic() {
		return fault.New(fault.Unsupported, "CRS", "it is %s, and the coordinates of shape %d are no "+
			"degrees: give their CRS as \"crs\", %q if they are pixels of the image", f.from, row, spec.PixelSpace)
	}
	return nil
}

// number resolves the values of the shapes of a file.
func (v *field) number(f *file) error {
	values := f.layer.Values
	if values == nil && (v.Classes != nil || v.Unnamed != "") && f.layer.Len() > 0 {
		return fault.New(fault.Unsupported, "classes", "they are given, and the file has no classes of its own: "+
			"column names the values that are the classes of shapes")
	}
	if values != nil && v.Unnamed != "" && v.Classes == nil && values.Kind() != tables.String && !values.AllNull() {
		return fault.New(fault.Unsupported, "unnamed", "it is %q, a string, and the values are numbers", v.Unnamed)
	}
	named := values != nil && v.Vector.Kind != spec.InstanceVector
	if named && v.Classes != nil && !f.layer.Ordinal && values.Kind() != tables.String {
		if values.Kind() == tables.Float64 {
			return fault.New(fault.Unsupported, "column "+v.Column, "numbers that are not whole are no classes")
		}
		values = vector.Texts(values)
		f.layer.Values = values
	}
	if named && values.Kind() == tables.String {
		codes, names := values.Distinct()
		f.codes, f.class = codes, make([]int64, len(names))
		for k, name := range names {
			f.class[k] = int64(slices.Index(v.Classes, name) + 1)
		}
		if err := v.compareClasses(f, names); err != nil {
			return err
		}
	}
	found := f.layer.Remarks
	for row := range f.layer.Len() {
		element, ok, err := v.element(f, uint32(row))
		switch {
		case err != nil:
			return fault.WithPart(err, "column "+v.Column, fault.NoOffset)
		case !ok && values.Null(row):
			found.Add(noValue, "shape ", row)
		case !ok:
			found.Add(otherClass, values.Str(row))
		case element == [8]byte{} && !v.Ragged():
			found.Add(background, "shape ", row)
		}
	}
	v.log(f.path, found)
	return nil
}

// compareClasses compares the names of Vector.Classes with those in a file. A name that the file has in other letters
// is an error: its shapes would be left out.
func (v *field) compareClasses(f *file, names []string) error {
	letters := strings.NewReplacer(" ", "", "-", "", "_", "").Replace
	var lacking []string
	for _, class := range v.Classes {
		if slices.Contains(names, class) || class == v.Unnamed || slices.Contains(f.layer.Listed, class) {
			continue
		}
		lacking = append(lacking, class)
		for k, name := range names {
			if f.class[k] == 0 && strings.EqualFold(letters(name), letters(class)) {
				return fault.New(fault.NotFound, "column "+v.Column, "classes has %q, which no shape has: they have %q",
					class, name)
			}
		}
	}
	switch {
	case len(names) == 0 || v.one == nil || len(lacking) == 0: // files of other images may have them
	case len(lacking) == len(v.Classes):
		return fault.New(fault.NotFound, "column "+v.Column, "no shape has one of classes: they have %s",
			fault.Names(names))
	default:
		v.log(f.path, vector.Remarks{unusedClasses: {First: fault.Names(lacking)}})
	}
	return nil
}

// beyond returns the first shape with coordinates that are no degrees, nor grads.
func beyond(layer *vector.Layer) (row uint32, found bool) {
	const x, y = 800, 200
	inf := math.Inf(1)
	rows := slices.Concat(layer.Search(x, -inf, inf, inf, 0), layer.Search(-inf, -inf, -x, inf, 0),
		layer.Search(-inf, y, inf, inf, 0), layer.Search(-inf, -inf, inf, -y, 0))
	if len(rows) == 0 {
		return 0, false
	}
	return slices.Min(rows), true
}

// small returns the default dtype of small numbers: uint8 for masks and, as PyTorch has labels, int64 for boxes and
// polygons.
func (v *field) small() string {
	if v.Ragged() {
		return "int64"
	}
	return "uint8"
}

// element returns the element of the tensor that a shape is drawn with, and false if it is not drawn.
func (v *field) element(f *file, row uint32) (b [8]byte, ok bool, err error) {
	values, number := f.layer.Values, int64(1)
	switch {
	case v.Vector.Kind == spec.InstanceVector:
		number = int64(row) + 1
	case values == nil:
	case values.Null(int(row)):
		if number = int64(slices.Index(v.Classes, v.Unnamed) + 1); v.Unnamed == "" || number == 0 {
			return b, false, nil
		}
	case f.layer.Ordinal && v.Classes != nil:
		if number = values.Int(int(row)) + 1; number < 1 || number > int64(len(v.Classes)) {
			return b, false, fault.New(fault.Unsupported, "", "shape %d has class %d, and classes has "+
				"%d names, from 0 on", row, values.Int(int(row)), len(v.Classes))
		}
	case f.layer.Ordinal && values.Int(int(row)) == 0 && !v.Ragged():
		return b, false, fault.New(fault.Unsupported, "", "shape %d has class 0, which is where no "+
			"shape is: give classes, whose first one becomes 1", row)
	case f.class != nil:
		if number = f.class[f.codes[row]]; number == 0 {
			return b, false, nil
		}
	case values.Kind() == tables.Float64:
		value := values.Float(int(row))
		if v.To == chunk.Float32 {
			if f := float32(value); math.IsInf(float64(f), 0) && !math.IsInf(value, 0) {
				return b, false, v.tooLarge(row, value)
			}
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(float32(value)))
			return b, true, nil
		}
		// Outside of int64 the result of the conversion depends on the kind of processor.
		if number = int64(value); !(value >= math.MinInt64 && value < math.MaxInt64) || float64(number) != value {
			return b, false, v.tooLarge(row, value)
		}
	default:
		number = values.Int(int(row))
	}
	if v.To == chunk.Float32 {
		// A number that is rounded up to 2^63 is no int64.
		if f := float64(float32(number)); f == math.MaxInt64 || int64(f) != number {
			return b, false, v.tooLarge(row, number)
		}
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(float32(number)))
		return b, true, nil
	}
	bits := 8 * v.To.Size()
	lo, hi := int64(-1)<<(bits-1), int64(1)<<(bits-1)-1
	if v.To == chunk.Uint8 {
		lo, hi = 0, math.MaxUint8
	}
	if number < lo || number > hi {
		return b, false, v.tooLarge(row, number)
	}
	binary.LittleEndian.PutUint64(b[:], uint64(number))
	return b, true, nil
}

// tooLarge returns the error about a value that the dtype cannot hold.
func (v *field) tooLarge(row uint32, value any) error {
	return fault.New(fault.Unsupported, "",
		"shape %d has %v, which %s cannot hold: give another dtype", row, value, v.To)
}

// pathOf returns the path of the image of a row, "" of none.
func (v *field) pathOf(ctx context.Context, row int64) (string, error) {
	value, err := v.image(ctx, row)
	return string(value.Text), cmp.Or(err, ctx.Err())
}

// byKeys sets the keys of the samples that the file of shapes names by these, and not by the paths of their images.
func (v *field) byKeys(ctx context.Context, t *rows.Table) error {
	return t.Keys(ctx, func(row int64, key string) error {
		if !v.one.layer.Names(key) {
			return nil
		}
		path, err := v.pathOf(ctx, row)
		if err == nil && path != "" && !v.one.layer.Names(path) {
			if v.keys == nil {
				v.keys = map[int64]string{}
			}
			v.keys[row] = key
		}
		return err
	})
}
