package shapes

import (
	"context"
	"math"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/vector"
	"github.com/chaski-eo/chaski/vector/rasterize"
)

// annotated returns the grid of a window of an image, in its pixels, with the numbers of its annotations.
func (v *Field) annotated(a *catalog.Asset, win shuffle.Box, h, w int, turn shuffle.Element) (*Picture, error) {
	name := a.URI
	if a.Member != "" {
		name = a.Member
	}
	rows, err := v.layer.OfImage(name, a.Index.Height, a.Index.Width)
	if err != nil {
		return nil, fault.WithFile(err, v.Path)
	}
	t := [6]float64{float64(win.X), float64(win.W) / float64(w), 0, float64(win.Y), 0, float64(win.H) / float64(h)}
	return &Picture{Grid: rasterize.Grid{Transform: t, Height: h, Width: w, AllTouched: v.AllTouched}, turn: turn,
		annotations: rows, imageHeight: a.Index.Height}, nil
}

// eachAnnotation calls do with the outlines of a window's annotations that have one.
func (v *Field) eachAnnotation(ctx context.Context, p *Picture,
	do func(row uint32, element [8]byte, shape orb.Geometry) error) error {
	for _, row := range p.annotations {
		element, ok, err := v.element(row)
		if err != nil {
			return err
		}
		if !ok || v.Ragged() && v.layer.Crowd(row) {
			continue
		}
		if v.Vector.Kind == spec.BoxVector {
			b, ok := v.layer.Box(row)
			if ok {
				err = do(row, element, (orb.Bound{Min: orb.Point{b[0], b[1]}, Max: orb.Point{b[2], b[3]}}).ToPolygon())
			}
		} else if runs, ok := v.layer.Runs(row); ok {
			err = v.masked(p, row, runs, func(y, x0, x1 int) {
				p.fill(p.drawn, element[:v.To.Size()], y, x0, x1)
			})
		} else {
			var shape orb.Geometry
			if shape, err = v.layer.Shape(ctx, row); err == nil && shape != nil {
				err = do(row, element, shape)
			}
		}
		if err != nil {
			return fault.WithFile(err, v.Path)
		}
	}
	return nil
}

// masked draws the mask of an annotation. In a window that is resized, a pixel takes the pixel of the image in which
// its middle lies.
func (v *Field) masked(p *Picture, row uint32, runs vector.Runs, draw func(y, x0, x1 int)) error {
	if v.Ragged() {
		return fault.New(fault.Unsupported, "annotation", fault.NoOffset,
			"annotation %d has a mask: kind %q takes polygons only", row, v.Vector.Kind)
	}
	t := &p.Transform
	pixel := func(k int, from, step float64) int { return int(math.Floor(from + float64((float64(k)+0.5)*step))) }
	first, last := runs.Columns()
	for x := range p.Width {
		ix := pixel(x, t[0], t[1])
		if ix < first || ix > last {
			continue
		}
		for y := range p.Height {
			// A window of an image that is padded reaches past it.
			if iy := pixel(y, t[3], t[5]); iy >= 0 && iy < p.imageHeight && runs.At(iy, ix) {
				draw(y, x, x+1)
			}
		}
	}
	return nil
}
