package ground

import (
	"math"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/scenes"
)

const (
	// maxSquares bounds the squares that are drawn on a map: each takes some 0.1 ms.
	maxSquares = 1 << 18
	// leastSquare is the side of a square in cells. Smaller ones might lie between the centres of cells, by which a
	// window is found to lie in a part.
	leastSquare = 4
	// metres of a degree of latitude, about
	degreeMetres = 111_000
	// farthest is how far UTM is used past its zones, in degrees of longitude and latitude.
	farthest = 20
)

// reach returns how many cells around the cell of its middle a window and half the margin touch, and 2 more: a cell
// belongs to a square by its centre, and squares are not parallel to the sides of cells.
func reach(o *scenes.Options, cell int) int {
	half := float64(o.Side/2) + math.Ceil(o.Part.Margin/2/o.Resolution)
	return int(math.Ceil(half/float64(cell))) + 2
}

// ofPart returns the cells whose windows belong to the part: all cells up to reach from the cell of the window's middle
// lie in its squares. Cells have pixels a side; those that are looked at have fine, which is the same for random
// windows.
func (m *Map) ofPart(all cells, pixels, fine int, o *scenes.Options) (cells, error) {
	half := 0
	if o.Stride > 0 { // a cell is the corner of its window
		half = o.Side / 2
	}
	middle := func(c int) int { return floor(float64(c*pixels+half) / float64(fine)) }
	size, around := float64(fine)*o.Resolution, reach(o, fine)
	bound := all.bound()
	only := &cellBox{middle(bound.y0) - around, middle(bound.x0) - around, middle(bound.y1-1) + around + 1,
		middle(bound.x1-1) + around + 1}
	if max(-only.y0, -only.x0, only.y1, only.x1) >= 1<<28 {
		return nil, fault.New(fault.Limit, "dataset", "cells of %v m are too small for the scenes", size)
	}
	list, err := m.squares(&lattice{size: size, only: only}, float64(around)*size, o)
	if err != nil {
		return nil, err
	}
	region := joined(list).shrunk(int32(around))
	if half == 0 {
		return all.both(region), nil
	}
	var out []span
	for _, line := range all {
		for x := line.x0; x < line.x1; x++ {
			if region.has(int32(middle(int(line.y))), int32(middle(int(x)))) {
				out = append(out, span{line.y, x, x + 1})
			}
		}
	}
	return joined(out), nil
}

// squares returns the cells of l whose centres lie in squares of the part, up to pad metres around the footprints.
func (m *Map) squares(l *lattice, pad float64, o *scenes.Options) (list []span, _ error) {
	part := o.Part
	around := m.around(pad)
	lat := min(max(-around.Min[1], around.Max[1]), 89) * math.Pi / 180
	if wide := part.Size * degreeMetres * math.Cos(lat); !(wide >= leastSquare*l.size) {
		return nil, fault.New(fault.Unsupported, "split",
			"squares of %v degrees are %.0f m wide at a latitude of %.4g degrees: they must be larger than a window "+
				"of %v m and its margin", part.Size, wide, lat*180/math.Pi, float64(o.Side)*o.Resolution)
	}
	world := orb.Bound{Min: orb.Point{-180, -90}, Max: orb.Point{180, 90}}
	count := 0
	for _, turn := range turns {
		w, e := max(around.Min[0]-turn, -180), min(around.Max[0]-turn, 180)
		if w >= e {
			continue
		}
		left, right := floor(w/part.Size), floor(e/part.Size)
		top, bottom := floor(around.Min[1]/part.Size), floor(around.Max[1]/part.Size)
		if count += (right - left + 1) * (bottom - top + 1); count > maxSquares {
			return nil, fault.New(fault.Limit, "split", "over %d squares of %v degrees lie around the scenes: take "+
				"larger ones, or scenes of one area", maxSquares, part.Size)
		}
		for y := top; y <= bottom; y++ {
			for x := left; x <= right; x++ {
				corner := orb.Point{float64(x) * part.Size, float64(y) * part.Size}
				far := orb.Point{float64(x+1) * part.Size, float64(y+1) * part.Size}
				bound := overlap(orb.Bound{Min: corner, Max: far}, world)
				if c := bound.Center(); bound.IsEmpty() || !part.Has(c[0], c[1]) {
					continue
				}
				pieces, err := m.on(orb.Polygon{bound.ToRing()}, o.Resolution/8, around)
				if err != nil {
					return nil, err
				}
				for _, piece := range pieces {
					list = l.draw(list, piece)
				}
			}
		}
	}
	return list, nil
}

// overlap returns the box that lies in a and in b.
func overlap(a, b orb.Bound) orb.Bound {
	return orb.Bound{
		Min: orb.Point{max(a.Min[0], b.Min[0]), max(a.Min[1], b.Min[1])},
		Max: orb.Point{min(a.Max[0], b.Max[0]), min(a.Max[1], b.Max[1])},
	}
}

// around returns the longitudes and latitudes up to some metres around the footprints.
func (m *Map) around(pad float64) orb.Bound {
	// A degree of longitude has 11 km at 84 degrees.
	deg := 0.1 + 1.5*pad/11_000
	may := m.reach
	if may.Max[0]-may.Min[0] < 180 { // a zone of UTM
		may = may.Pad(min(deg, farthest))
		may.Min[1], may.Max[1] = max(may.Min[1], -89), min(may.Max[1], 89)
	}
	return overlap(m.feetBound.Pad(deg), may)
}
