// Package shapes draws the shapes of a file into windows of rasters, or cuts them to the windows. A Field is compiled
// once for all samples: it finds the shapes that lie in a window, converts them to the CRS of the raster, and knows the
// value that each of them is drawn with. It knows neither datasets nor batches, only the asset and the window.
package shapes

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/vector"
)

// Field is a compiled field of shapes.
type Field struct {
	spec.Vector
	Name    string
	To      chunk.DType // of the elements
	layer   *vector.Layer
	from    *crs.CRS // of the shapes
	class   []int64  // for each of the layer's names its value, 0 if it has none; nil without classes
	targets sync.Map // from EPSG code to *target
}

// Open opens the file of a field. Its shapes are drawn on rasters of t.
func Open(ctx context.Context, f spec.Field, t rows.Table, o resources.Options) (*Field, error) {
	field := &Field{Vector: *f.Vector, Name: f.Name}
	path, err := o.Resolve(field.Path)
	if err != nil {
		return nil, err
	}
	if t.Extras().Array {
		return nil, fault.New(fault.Unsupported, "dataset", fault.NoOffset,
			"images of arrays do not say where they lie: shapes are for rasters that do")
	}
	read := vector.Options{Column: field.Column, Image: field.Image, Grow: budget.Grow}
	field.layer, err = vector.Open(ctx, o.Opener, path, read)
	if err != nil {
		return nil, err
	}
	if err := field.compile(); err != nil {
		_ = field.layer.Close() // it was only read
		return nil, fault.WithFile(err, field.Path)
	}
	return field, nil
}

// Close closes the file.
func (v *Field) Close() error { return v.layer.Close() }

// Fingerprint names the content of the file.
func (v *Field) Fingerprint() string { return v.layer.Fingerprint() }

// compile resolves the CRS and the values of the shapes.
func (v *Field) compile() error {
	v.from = v.layer.CRS
	if v.CRS != "" {
		system, ok := crs.ByName(v.CRS)
		if !ok {
			return fmt.Errorf("vector: crs is %q: it is not known", v.CRS)
		}
		v.from = system
	}
	if v.from == nil && v.Image == "" {
		return fault.New(fault.Unsupported, "CRS", fault.NoOffset, `the file has none: give it as "crs"`)
	}
	dtype := v.DType
	values := v.layer.Values
	column := func(format string, args ...any) error {
		return fault.New(fault.Unsupported, "column "+v.Column, fault.NoOffset, format, args...)
	}
	switch {
	case v.Vector.Kind == spec.InstanceVector:
		dtype = cmp.Or(dtype, "int32")
	case values == nil:
		dtype = cmp.Or(dtype, v.small())
	case values.Codes != nil && v.Classes == nil:
		return column("it has strings: give classes, in the order of their values from 1; there are %s",
			some(values.Names))
	case values.Codes == nil && v.Classes != nil:
		return column("it has numbers, and classes are for strings")
	case values.Codes != nil:
		dtype = cmp.Or(dtype, v.small())
		v.class = make([]int64, len(values.Names))
		for i, name := range v.Classes {
			if k, ok := slices.BinarySearch(values.Names, name); ok { // the column may lack a class
				v.class[k] = int64(i + 1)
			}
		}
	case values.Ints != nil:
		dtype = cmp.Or(dtype, "int64")
	default:
		dtype = cmp.Or(dtype, "float32")
	}
	var err error
	if v.To, err = chunk.ParseDType(dtype); err != nil {
		return err
	}
	for row := range v.layer.Len() {
		if _, _, err := v.element(uint32(row)); err != nil {
			return fault.WithPart(err, "column "+v.Column, fault.NoOffset)
		}
	}
	return nil
}

// Ragged reports whether the field has boxes or polygons, not pixels.
func (v *Field) Ragged() bool {
	return v.Vector.Kind == spec.BoxVector || v.Vector.Kind == spec.PolygonVector
}

// small returns the default dtype of small numbers: uint8 for masks and, as PyTorch has labels, int64 for boxes and
// polygons.
func (v *Field) small() string {
	if v.Ragged() {
		return "int64"
	}
	return "uint8"
}

// some lists the first of many names.
func some(names []string) string {
	if len(names) > 20 {
		return fmt.Sprintf("%q and %d more", names[:20], len(names)-20)
	}
	return fmt.Sprintf("%q", names)
}

// element returns the element of the tensor that a shape is drawn with, and false if it is not drawn.
func (v *Field) element(row uint32) (b [8]byte, ok bool, err error) {
	values, number := v.layer.Values, int64(1)
	switch {
	case v.Vector.Kind == spec.InstanceVector:
		number = int64(row) + 1
	case values == nil:
	case values.Null(int(row)):
		return b, false, nil
	case v.class != nil:
		if number = v.class[values.Codes[row]]; number == 0 {
			return b, false, nil
		}
	case values.Floats != nil:
		value := values.Floats[row]
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
		number = values.Ints[row]
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
func (v *Field) tooLarge(row uint32, value any) error {
	return fault.New(fault.Unsupported, "", fault.NoOffset,
		"shape %d has %v, which %s cannot hold: give another dtype", row, value, v.To)
}
