package loader

import (
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
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/vector"
	"github.com/chaski-eo/chaski/vector/rasterize"
)

// vectorField is a compiled field of shapes.
type vectorField struct {
	spec.Vector
	name  string
	layer *vector.Layer
	from  *crs.CRS // of the shapes
	dtype chunk.DType
	class []int64  // for each of the layer's names its value, 0 if it has none; nil without classes
	to    sync.Map // from EPSG code to *target
}

// target is the CRS of an image, and the conversions between it and that of the shapes.
type target struct {
	forth, back *crs.Transform

	wide float64 // after how much of x the map of the image repeats, or 0
	from float64 // the same of the map of the shapes
}

// openVector opens the file of a field.
func openVector(ctx context.Context, f Field, t rows.Table, o Options) (*vectorField, error) {
	v := &vectorField{Vector: *f.Vector, name: f.Name}
	path, err := o.Resolve(v.Path)
	if err != nil {
		return nil, err
	}
	if t.Extras().Coordinate != nil {
		return nil, fault.New(fault.Unsupported, "dataset", fault.NoOffset,
			"images of arrays do not say where they lie: shapes are for rasters that do")
	}
	v.layer, err = vector.Open(ctx, o.Opener, path, vector.Options{Column: v.Column, Grow: budget.Grow})
	if err != nil {
		return nil, err
	}
	if err := v.compile(); err != nil {
		_ = v.layer.Close() // it was only read
		return nil, fault.WithFile(err, v.Path)
	}
	return v, nil
}

// compile resolves the CRS and the values of the shapes.
func (v *vectorField) compile() error {
	v.from = v.layer.CRS
	if v.CRS != "" {
		c, ok := crs.ByName(v.CRS)
		if !ok {
			return fmt.Errorf("spec: vector: crs is %q: it is not known", v.CRS)
		}
		v.from = c
	}
	if v.from == nil {
		return fault.New(fault.Unsupported, "CRS", fault.NoOffset, `the file does not say which: give it as "crs"`)
	}
	dtype := v.DType
	values := v.layer.Values
	column := func(format string, args ...any) error {
		return fault.New(fault.Unsupported, "column "+v.Column, fault.NoOffset, format, args...)
	}
	switch {
	case v.Vector.Kind == spec.InstanceVector:
		dtype = orElse(dtype, "int32")
	case values == nil:
		dtype = orElse(dtype, "uint8")
	case values.Codes != nil && v.Classes == nil:
		return column("it has strings: give classes, in the order of their values from 1; there are %s",
			some(values.Names))
	case values.Codes == nil && v.Classes != nil:
		return column("it has numbers, and classes are for strings")
	case values.Codes != nil:
		dtype = orElse(dtype, "uint8")
		v.class = make([]int64, len(values.Names))
		for i, name := range v.Classes {
			if k, ok := slices.BinarySearch(values.Names, name); ok {
				v.class[k] = int64(i + 1)
			}
		}
	case values.Ints != nil:
		dtype = orElse(dtype, "int64")
	default:
		dtype = orElse(dtype, "float32")
	}
	var err error
	if v.dtype, err = chunk.ParseDType(dtype); err != nil {
		return err
	}
	for row := range v.layer.Len() {
		if _, _, err := v.element(uint32(row)); err != nil {
			return fault.WithPart(err, "column "+v.Column, fault.NoOffset)
		}
	}
	return nil
}

func orElse(given, other string) string {
	if given != "" {
		return given
	}
	return other
}

// some lists the first of many names.
func some(names []string) string {
	if len(names) > 20 {
		return fmt.Sprintf("%q and %d more", names[:20], len(names)-20)
	}
	return fmt.Sprintf("%q", names)
}

// element returns the element of the tensor that a shape is drawn with, and false if it is not drawn.
func (v *vectorField) element(row uint32) (b [8]byte, ok bool, err error) {
	values, n := v.layer.Values, int64(1)
	switch {
	case v.Vector.Kind == spec.InstanceVector:
		n = int64(row) + 1
	case values == nil:
	case values.Null(int(row)):
		return b, false, nil
	case v.class != nil:
		if n = v.class[values.Codes[row]]; n == 0 {
			return b, false, nil
		}
	case values.Floats != nil:
		x := values.Floats[row]
		if v.dtype == chunk.Float32 {
			if f := float32(x); math.IsInf(float64(f), 0) && !math.IsInf(x, 0) {
				return b, false, v.tooLarge(row, x)
			}
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(float32(x)))
			return b, true, nil
		}
		// Outside of int64, what the conversion gives is another number on each kind of processor.
		if n = int64(x); !(x >= math.MinInt64 && x < math.MaxInt64) || float64(n) != x {
			return b, false, v.tooLarge(row, x)
		}
	default:
		n = values.Ints[row]
	}
	if v.dtype == chunk.Float32 {
		// A number that is rounded up to 2^63 is no int64.
		if f := float64(float32(n)); f == math.MaxInt64 || int64(f) != n {
			return b, false, v.tooLarge(row, n)
		}
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(float32(n)))
		return b, true, nil
	}
	bits := 8 * v.dtype.Size()
	lo, hi := int64(-1)<<(bits-1), int64(1)<<(bits-1)-1
	if v.dtype == chunk.Uint8 {
		lo, hi = 0, math.MaxUint8
	}
	if n < lo || n > hi {
		return b, false, v.tooLarge(row, n)
	}
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	return b, true, nil
}

// tooLarge returns the error about a value that the dtype does not have.
func (v *vectorField) tooLarge(row uint32, value any) error {
	return fault.New(fault.Unsupported, "", fault.NoOffset,
		"shape %d has %v, which %s does not have: give another dtype", row, value, v.dtype)
}

// target returns the CRS of an image.
func (v *vectorField) target(epsg int) (*target, error) {
	if t, ok := v.to.Load(epsg); ok {
		return t.(*target), nil
	}
	c, err := crs.Lookup(epsg)
	if err != nil {
		return nil, err
	}
	t := &target{wide: c.Width(), from: v.from.Width()}
	if t.forth, err = crs.NewTransform(v.from, c); err != nil {
		return nil, err
	}
	t.back = t.forth.Reverse()
	v.to.Store(epsg, t) // there are at most as many as package crs knows, some thousands
	return t, nil
}

// picture is the grid that shapes are drawn into: a window of an image, in the size of the tensor.
type picture struct {
	rasterize.Grid
	to   *target
	turn shuffle.Element
}

// picture returns the grid of a window of an asset. An asset whose place is not known is unsupported.
func (v *vectorField) picture(a *catalog.Asset, win shuffle.Box, h, w int, turn shuffle.Element) (*picture, error) {
	refuse := func(what string) (*picture, error) {
		return nil, fault.New(fault.Unsupported, "place", fault.NoOffset, "%s, which the field %q needs", what, v.name)
	}
	p := a.Place
	switch {
	case p == nil:
		return refuse("the file does not say where it lies")
	case p.EPSG == 0:
		return refuse("the file does not name its CRS by a code")
	case p.Boxed:
		return refuse("the catalog does not say how the image lies: make it again with 'chaski index'")
	}
	t, err := v.target(p.EPSG)
	if err != nil {
		return nil, err
	}
	return &picture{rasterize.Grid{Transform: gridOf(p, a.Index.Height, a.Index.Width, win, h, w), Height: h, Width: w,
		AllTouched: v.AllTouched}, t, turn}, nil
}

// gridOf returns the transform of a window that becomes h by w pixels, of an image of height by width.
func gridOf(p *catalog.Place, height, width int, win shuffle.Box, h, w int) [6]float64 {
	// From the corners, which catalogs keep, too: a transform that came from elsewhere could differ in the last bit,
	// and with it a pixel.
	t := p.Transform(height, width)
	o := crs.At(&t, float64(win.X), float64(win.Y))
	// In this order, as the scale alone would be rounded.
	right := func(x float64) float64 { return x * float64(win.W) / float64(w) }
	down := func(y float64) float64 { return y * float64(win.H) / float64(h) }
	return [6]float64{o[0], right(t[1]), down(t[2]), o[1], right(t[4]), down(t[5])}
}

// cuts is how many pieces each side of a window is cut into to find the box around it in another CRS. An edge bends
// between two of the places by 1/64 of what it bends in all, far less than the margin.
const cuts = 8

// bounds returns a box, in the CRS of the shapes, that holds the window and a pixel around it.
func (p *picture) bounds() (lo, hi crs.Point) {
	var places [(cuts + 1) * (cuts + 1)]crs.Point
	for i := range places {
		along := func(k, n int) float64 { return float64(k)/cuts*float64(n+2) - 1 }
		places[i] = crs.At(&p.Transform, along(i%(cuts+1), p.Width), along(i/(cuts+1), p.Height))
	}
	p.to.back.Points(places[:], places[:])
	lo, hi = places[0], places[0]
	for _, c := range places {
		for axis, x := range c {
			if x != x { // a part of the window has no place there: every shape may meet the window
				return crs.Point{math.Inf(-1), math.Inf(-1)}, crs.Point{math.Inf(1), math.Inf(1)}
			}
			lo[axis], hi[axis] = min(lo[axis], x), max(hi[axis], x)
		}
	}
	if p.to.forth.Same() {
		return lo, hi
	}
	margin := 0.05
	if wide := p.to.from; wide > 0 && hi[0]-lo[0] > wide/2 { // around a pole, or nearly so
		lo[0], hi[0], margin = lo[0]-wide, hi[0]+wide, 0.5
	}
	for axis := range lo {
		m := margin * (hi[axis] - lo[axis])
		lo[axis], hi[axis] = lo[axis]-m, hi[axis]+m
	}
	return lo, hi
}
