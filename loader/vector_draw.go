package loader

import (
	"context"
	"fmt"
	"math"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// draw draws the shapes of a window into a tensor of its pixels, which are 0.
func (v *vectorField) draw(ctx context.Context, p *picture, dst []byte) error {
	lo, hi := p.bounds()
	size := v.dtype.Size()
	for _, row := range v.layer.Search(lo[0], lo[1], hi[0], hi[1], p.to.from) {
		element, ok, err := v.element(row)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		shape, err := v.layer.Shape(ctx, row)
		if err != nil {
			return fault.WithFile(err, v.Path)
		}
		ok = p.Spans(p.place(shape), func(y, x0, x1 int) { p.fill(dst, element[:size], y, x0, x1) })
		if !ok {
			return fault.New(fault.Unsupported, "transform", fault.NoOffset, "%v cannot be inverted", p.Transform)
		}
	}
	return nil
}

// fill writes an element to columns x0 to x1-1 of row y, turned as pixels.Row turns pixels.
func (p *picture) fill(dst, element []byte, y, x0, x1 int) {
	w, size := p.Width, len(element)
	if p.turn&shuffle.FlipX != 0 {
		x0, x1 = w-x1, w-x0
	}
	if p.turn&shuffle.FlipY != 0 {
		y = p.Height - 1 - y
	}
	if p.turn&shuffle.Transpose != 0 { // windows are square then
		for x := x0; x < x1; x++ {
			copy(dst[(x*w+y)*size:], element)
		}
		return
	}
	row := dst[(y*w+x0)*size : (y*w+x1)*size]
	for n := copy(row, element); n < len(row); n *= 2 {
		copy(row[n:], row[:n])
	}
}

// place converts a shape, which it may change, to the CRS of the image.
func (p *picture) place(shape orb.Geometry) orb.Geometry {
	if !p.to.forth.Same() {
		shape = each(shape, p.convert)
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
	return each(shape, func(list []orb.Point) {
		for i := range list {
			list[i][0] += turns * p.to.wide
		}
	})
}

// convert converts points to the CRS of the image.
func (p *picture) convert(list []orb.Point) {
	// A few at a time, so that they need no memory of their own.
	var some [64]crs.Point
	for len(list) > 0 {
		n := min(len(list), len(some))
		for i := range n {
			some[i] = crs.Point(list[i])
		}
		p.to.forth.Points(some[:n], some[:n])
		for i := range n {
			list[i] = orb.Point(some[i])
		}
		list = list[n:]
	}
}

// each calls change with the points of a shape of package wkb, and returns the shape with what becomes of them.
func each(shape orb.Geometry, change func([]orb.Point)) orb.Geometry {
	switch s := shape.(type) {
	case orb.Point:
		one := []orb.Point{s}
		change(one)
		return one[0]
	case orb.LineString:
		change(s)
	case orb.Polygon:
		for _, r := range s {
			change(r)
		}
	case orb.Collection:
		for i := range s {
			s[i] = each(s[i], change)
		}
	}
	return shape
}

// shown returns the first raster of a draw, and its window there. A window on the ground is an asset of its own.
func (e *Engine) shown(ctx context.Context, d *dataset, draw *shuffle.Draw) (catalog.Asset, shuffle.Box, error) {
	if d.ground != nil {
		a := d.windowAsset(e.plan, draw)
		return a, shuffle.Box{H: a.Index.Height, W: a.Index.Width}, nil
	}
	a, err := d.table.Asset(ctx, d.rasters[0].TableColumn, draw.Row)
	if err != nil {
		return a, shuffle.Box{}, err
	}
	win, err := e.windowOf(ctx, d, draw, 0, draw.Row, a)
	return a, win, a.Fault(err)
}

// vectors draws the shapes of a row, of all fields.
func (u unit) vectors(d *dataset, draw *shuffle.Draw) error {
	if len(d.vectors) == 0 {
		return nil
	}
	p, e := u.p, u.p.engine
	a, win, err := e.shown(p.ctx, d, draw)
	if err != nil {
		return err
	}
	for i, v := range d.vectors {
		pic, err := v.picture(&a, win, d.rasters[0].H, d.rasters[0].W, draw.Transform)
		if err != nil {
			return a.Fault(err)
		}
		dst := p.vector(i, u.row)
		clear(dst) // a bad sample that this one replaces may have been drawn here
		if err := v.draw(p.ctx, pic, dst); err != nil {
			return a.Fault(rows.InField(v.name, err))
		}
	}
	return nil
}

// checkVectors reads all shapes on an asset of the first raster field.
func (d *dataset) checkVectors(ctx context.Context, a *catalog.Asset) error {
	for _, v := range d.vectors {
		h, w := a.Index.Height, a.Index.Width
		pic, err := v.picture(a, shuffle.Box{H: h, W: w}, h, w, shuffle.Identity)
		if err != nil {
			return a.Fault(err)
		}
		lo, hi := pic.bounds()
		for _, row := range v.layer.Search(lo[0], lo[1], hi[0], hi[1], pic.to.from) {
			if _, err := v.layer.Shape(ctx, row); err != nil {
				return a.Fault(rows.InField(v.name, fault.WithFile(err, v.Path)))
			}
		}
	}
	return nil
}

// vector returns the memory of a row of a field of shapes.
func (p *Pending) vector(i, row int) []byte {
	at := p.layout.vectors[i]
	n := p.engine.sets[0].vectorBytes(i)
	return p.buf[at+row*n:][:n:n]
}

// vectorBytes returns the bytes of a row of a field of shapes.
func (d *dataset) vectorBytes(i int) int {
	return d.rasters[0].H * d.rasters[0].W * d.vectors[i].dtype.Size()
}

// clearVectors makes background of the shapes of a row.
func (p *Pending) clearVectors(k int) {
	for i := range p.engine.sets[0].vectors {
		clear(p.vector(i, k))
	}
}

// vectorAxes are the axes of the tensor of a field of shapes.
var vectorAxes = []string{"n", "y", "x"}

// vectorTensors returns the tensors of the fields of shapes.
func (p *Pending) vectorTensors() (out []Tensor) {
	d, n := p.engine.sets[0], p.batch.Rows
	for i, v := range d.vectors {
		at := p.layout.vectors[i]
		end := at + n*d.vectorBytes(i)
		out = append(out, Tensor{Name: v.name, DType: v.dtype, Axes: vectorAxes, Data: p.buf[at:end:end],
			Shape: []int64{int64(n), int64(d.rasters[0].H), int64(d.rasters[0].W)}})
	}
	return out
}

// vectorInfos describes the tensors of vectorTensors, for a batch of one row.
func (e *Engine) vectorInfos() (out []FieldInfo) {
	d := e.sets[0]
	for _, v := range d.vectors {
		shape := []int64{1, int64(d.rasters[0].H), int64(d.rasters[0].W)}
		out = append(out, FieldInfo{v.name, vectorKind, v.dtype, shape, vectorAxes})
	}
	return out
}

// vectorKind is FieldInfo.Kind of a field of shapes.
const vectorKind = "vector"

// addVectors places the tensors of shapes.
func (l *layout) addVectors(d *dataset, rows int, bound int64) error {
	for _, v := range d.vectors {
		n := pixels.BoundedBytes(bound, rows, d.rasters[0].H, d.rasters[0].W, v.dtype.Size())
		if n < 0 || int64(l.bytes)+n > bound {
			return overMemory(fmt.Sprintf("field %q", v.name), rows, "", bound)
		}
		l.vectors = append(l.vectors, l.bytes)
		l.bytes = pixels.Align64(l.bytes + int(n))
	}
	return nil
}
