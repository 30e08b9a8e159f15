package vectors

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path"
	"slices"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/vector"
	"github.com/chaski-eo/chaski/format/vector/rasterize"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/loader/shapes"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// target is the CRS of an image, and the conversions between it and the CRS of the shapes.
type target struct {
	forth, back *crs.Transform

	wide float64 // after how much of x the map of the image repeats, or 0
	from float64 // the same of the map of the shapes
}

// target returns the CRS of an image.
func (f *file) target(epsg int) (*target, error) {
	if t, ok := f.targets.Load(epsg); ok {
		return t.(*target), nil
	}
	system, err := crs.Lookup(epsg)
	if err != nil {
		return nil, err
	}
	made := &target{wide: system.Width(), from: f.from.Width()}
	if made.forth, err = crs.NewTransform(f.from, system); err != nil {
		return nil, err
	}
	made.back = made.forth.Reverse()
	f.targets.Store(epsg, made) // there are at most as many as package crs knows, some thousands
	return made, nil
}

// picture is a shapes.Picture.
type picture struct {
	rasterize.Grid
	field *field
	file  *file   // nil without shapes
	to    *target // nil for shapes in pixels
	turn  shuffle.Element
	rows  []uint32 // rows of the shapes of one image, for shapes in pixels
	image [2]int   // width and height of the image, for shapes in pixels

	height, width float64 // of the image, for shapes in shares of it; otherwise 0
}

func (v *field) Picture(ctx context.Context, row int64, a *catalog.Asset, win shuffle.Box, h, w int,
	turn shuffle.Element) (shapes.Picture, error) {
	return v.picture(ctx, row, a, win, h, w, turn)
}

// picture is Picture.
func (v *field) picture(ctx context.Context, row int64, a *catalog.Asset, win shuffle.Box, h, w int,
	turn shuffle.Element) (*picture, error) {
	file := v.one
	if v.each != nil {
		var err error
		if file, err = v.fileOf(ctx, row); err != nil {
			return nil, err
		}
	}
	if file == nil || file.space != vector.Ground {
		return v.inPixels(ctx, file, row, a, win, h, w, turn)
	}
	if err := v.placed(a); err != nil {
		return nil, err
	}
	grid := rasterize.Grid{Transform: gridOf(a.Place, a.Index.Height, a.Index.Width, win, h, w), Height: h, Width: w,
		AllTouched: v.AllTouched}
	out := &picture{Grid: grid, field: v, file: file, turn: turn}
	var err error
	if out.to, err = file.target(a.Place.EPSG); err == nil {
		v.beside.note(ctx, out, a)
	}
	return out, err
}

func (v *field) Placeable(ctx context.Context, row int64, a *catalog.Asset) error {
	if v.Pattern == "" {
		_, err := v.picture(ctx, row, a, shuffle.Box{H: 1, W: 1}, 1, 1, shuffle.Identity)
		return err
	}
	// The extensions of formats whose shapes lie on the ground, unless the field says otherwise.
	known := []string{".geojson", ".geojsonl", ".geojsons", ".parquet", ".geoparquet"}
	if v.CRS == spec.PixelSpace || v.CRS == spec.ShareSpace || !slices.Contains(known, path.Ext(v.Pattern)) {
		return nil
	}
	return v.placed(a)
}

// placed returns an error if an asset does not say where on the ground its pixels lie.
func (v *field) placed(a *catalog.Asset) error {
	err := a.Unplaced(fmt.Sprintf("the field %q needs", v.Name))
	if err == nil && a.Place.Boxed {
		err = fault.New(fault.Unsupported, "place", "the catalog does not say how the image lies, "+
			"which the field %q needs: make it again with 'chaski index'", v.Name)
	}
	return err
}

// inPixels returns the grid of a window of an image, in its pixels, with the shapes of the image. If the sample has no
// file, it has no shapes.
func (v *field) inPixels(ctx context.Context, f *file, row int64, a *catalog.Asset, win shuffle.Box, h, w int,
	turn shuffle.Element) (*picture, error) {
	t := [6]float64{float64(win.X), float64(win.W) / float64(w), 0, float64(win.Y), 0, float64(win.H) / float64(h)}
	out := &picture{Grid: rasterize.Grid{Transform: t, Height: h, Width: w, AllTouched: v.AllTouched},
		field: v, file: f, turn: turn, image: [2]int{a.Index.Width, a.Index.Height}}
	if f == nil {
		v.beside.note(ctx, out, a)
		return out, nil
	}
	if f.space == vector.Shares {
		out.height, out.width = float64(a.Index.Height), float64(a.Index.Width)
	}
	if v.OwnTable() {
		out.rows = f.layer.OfRow(row).Rows
		v.beside.note(ctx, out, a)
		return out, nil
	}
	uri := cmp.Or(a.Member, a.URI)
	if v.image != nil { // members of several files may have one name
		if value, err := v.image(ctx, row); err == nil && len(value.Text) > 0 {
			uri = string(value.Text)
		}
	}
	image, err := f.layer.OfImage(vector.Sample{Key: v.keys[row], URI: uri})
	if err != nil && !(v.Missing == spec.MissingEmpty && fault.KindOf(err) == fault.NotFound) {
		return out, fault.WithFile(err, f.path)
	}
	out.rows = image.Rows
	if said := [2]int{int(image.Width), int(image.Height)}; said[0] > 0 && said != out.image {
		sizes := fmt.Sprintf("%dx%d, and %s has %dx%d", said[0], said[1], uri, out.image[0], out.image[1])
		v.log(f.path, vector.Remarks{vector.OtherSize: {N: len(out.rows), First: sizes}})
	}
	if image.Other != "" {
		v.log(f.path, vector.Remarks{otherImage: {N: len(out.rows), First: image.Other + " for " + uri}})
	}
	v.beside.note(ctx, out, a)
	return out, nil
}

// gridOf returns the transform of a window that becomes h by w pixels, of an image of height by width.
func gridOf(p *catalog.Place, height, width int, win shuffle.Box, h, w int) [6]float64 {
	// From the corners, which catalogs keep, too: a transform that came from elsewhere could differ in the last bit,
	// and with it a pixel.
	transform := p.Transform(height, width)
	point := crs.At(&transform, float64(win.X), float64(win.Y))
	// In this order, as the scale alone would be rounded.
	right := func(x float64) float64 { return x * float64(win.W) / float64(w) }
	down := func(y float64) float64 { return y * float64(win.H) / float64(h) }
	return [6]float64{
		point[0], right(transform[1]), down(transform[2]), point[1], right(transform[4]), down(transform[5]),
	}
}

// cuts is how many pieces each side of a window is cut into to find the box around it in another CRS. Between two of
// these points an edge bends by 1/64 of its whole bend, far less than the margin.
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

// fill writes an element to columns x0 to x1-1 of row y, turned as pixels.Row turns pixels.
func (p *picture) fill(dst, element []byte, y, x0, x1 int) {
	width, size := p.Width, len(element)
	if p.turn&shuffle.FlipX != 0 {
		x0, x1 = width-x1, width-x0
	}
	if p.turn&shuffle.FlipY != 0 {
		y = p.Height - 1 - y
	}
	if p.turn&shuffle.Transpose != 0 { // windows are square then
		for x := x0; x < x1; x++ {
			copy(dst[(x*width+y)*size:], element)
		}
		return
	}
	row := dst[(y*width+x0)*size : (y*width+x1)*size]
	for n := copy(row, element); n < len(row); n *= 2 {
		copy(row[n:], row[:n])
	}
}

// place converts a shape, which it may change, to the CRS of the image.
func (p *picture) place(shape orb.Geometry) orb.Geometry {
	if p.to == nil {
		if p.height == 0 {
			return shape
		}
		return eachPoint(shape, func(list []orb.Point) {
			for i := range list {
				list[i][0] *= p.width
				list[i][1] *= p.height
			}
		})
	}
	if !p.to.forth.Same() {
		shape = eachPoint(shape, p.convert)
	}
	if p.to.wide == 0 || shape == nil {
		return shape
	}
	// On a map that repeats, the shape may be some turns away.
	b := shape.Bound()
	middle := crs.At(&p.Transform, float64(p.Width)/2, float64(p.Height)/2)
	turns := math.Round((middle[0] - (b.Min[0]+b.Max[0])/2) / p.to.wide)
	if turns == 0 || turns != turns || math.Abs(turns) > 2 {
		return shape
	}
	return eachPoint(shape, func(list []orb.Point) {
		for i := range list {
			list[i][0] += turns * p.to.wide
		}
	})
}

// convert converts points to the CRS of the image.
func (p *picture) convert(list []orb.Point) {
	// A few at a time: they need no memory of their own.
	var some [64]crs.Point
	for len(list) > 0 {
		count := min(len(list), len(some))
		for i := range count {
			some[i] = crs.Point(list[i])
		}
		p.to.forth.Points(some[:count], some[:count])
		for i := range count {
			list[i] = orb.Point(some[i])
		}
		list = list[count:]
	}
}

// eachPoint calls change with the points of a shape of package wkb, and returns the shape with what becomes of them.
func eachPoint(shape orb.Geometry, change func([]orb.Point)) orb.Geometry {
	switch s := shape.(type) {
	case orb.Point:
		points := []orb.Point{s}
		change(points)
		return points[0]
	case orb.LineString:
		change(s)
	case orb.Polygon:
		for _, r := range s {
			change(r)
		}
	case orb.Collection:
		for i := range s {
			s[i] = eachPoint(s[i], change)
		}
	}
	return shape
}

// turnPoint turns a point of the window, as pixels.Row turns pixels.
func (p *picture) turnPoint(at orb.Point) (x, y float32) {
	if p.turn&shuffle.FlipX != 0 {
		at[0] = float64(p.Width) - at[0]
	}
	if p.turn&shuffle.FlipY != 0 {
		at[1] = float64(p.Height) - at[1]
	}
	if p.turn&shuffle.Transpose != 0 { // windows are square then
		at[0], at[1] = at[1], at[0]
	}
	return float32(at[0]), float32(at[1])
}

// mirrors reports whether the window is turned to its mirror image.
func (p *picture) mirrors() bool {
	odd := false
	for _, flip := range []shuffle.Element{shuffle.FlipX, shuffle.FlipY, shuffle.Transpose} {
		odd = odd != (p.turn&flip != 0)
	}
	return odd
}
