package rasterize

import (
	"math"

	"github.com/paulmach/orb"
)

// bresenham covers one pixel for each step along the longer side of a line between two pixels. After k of the steps the
// line is at the whole number of the rises, which are the steps along the shorter side, that is nearest to
// k·rises/steps, the higher of two.
func (d *drawer) bresenham(from, to orb.Point) {
	x0, y0 := int(math.Floor(from[0])), int(math.Floor(from[1]))
	x1, y1 := int(math.Floor(to[0])), int(math.Floor(to[1]))
	long, short, size := [2]int{x0, x1}, [2]int{y0, y1}, d.Width
	turned := abs(x1-x0) < abs(y1-y0)
	if turned {
		long, short, size = short, long, d.Height
	}
	steps, rises := abs(long[1]-long[0]), abs(short[1]-short[0])
	step, side := sign(long[1]-long[0]), sign(short[1]-short[0])
	first, last := 0, steps // steps that lie in the grid
	if step > 0 {
		first, last = max(first, -long[0]), min(last, size-1-long[0])
	} else {
		first, last = max(first, long[0]-size+1), min(last, long[0])
	}
	for k := first; k <= last; k++ {
		off := 0
		if steps > 0 {
			off = (2*rises*k + steps) / (2 * steps)
		}
		x, y := long[0]+step*k, short[0]+side*off
		if turned {
			x, y = y, x
		}
		d.span(y, x, x+1)
	}
}

func abs(v int) int { return max(v, -v) }

func sign(v int) int {
	if v < 0 {
		return -1
	}
	return 1
}

const (
	// straight is the width in pixels below which GDAL takes a line for a vertical or horizontal one.
	straight = 0.01
	// onEdge is the distance from the edge of a pixel below which a vertical or horizontal outline of
	// a polygon runs along it and touches neither side, and a line that ends there does not touch the
	// pixel past it.
	onEdge = 1e-4
	// least is the smallest step across the edge of a pixel.
	least = 1e-9
)

// touch covers all pixels that a line passes through. outline says that it belongs to a polygon: then
// lines along the edges of pixels cover nothing.
func (d *drawer) touch(a, b orb.Point, outline bool) {
	height, width := float64(d.Height), float64(d.Width)
	before := a[1] < 0 && b[1] < 0 || a[0] < 0 && b[0] < 0
	after := a[1] > height && b[1] > height || a[0] > width && b[0] > width
	if before || after {
		return
	}
	if a[0] > b[0] {
		a, b = b, a
	}
	along := func(axis int) bool {
		return outline && math.Abs(a[axis]-math.Round(a[axis])) < onEdge &&
			math.Abs(b[axis]-math.Round(b[axis])) < onEdge
	}
	switch {
	case math.Floor(a[0]) == math.Floor(b[0]) || math.Abs(a[0]-b[0]) < straight:
		if along(0) {
			return
		}
		x := int(math.Floor(b[0]))
		low, high := min(a[1], b[1]), max(a[1], b[1])
		for y := max(0, int(math.Floor(low))); y <= min(d.Height-1, int(math.Floor(high-onEdge))); y++ {
			d.span(y, x, x+1)
		}
	case math.Floor(a[1]) == math.Floor(b[1]) || math.Abs(a[1]-b[1]) < straight:
		if along(1) {
			return
		}
		d.span(int(math.Floor(a[1])), int(math.Floor(a[0])), int(math.Floor(b[0]-onEdge))+1)
	default:
		d.slope(a, b)
	}
}

// slope covers the pixels of a line that runs to the right, up or down. It steps from one edge of a
// pixel to the next, in GDAL's order of operations.
func (d *drawer) slope(a, b orb.Point) {
	height, width := float64(d.Height), float64(d.Width)
	slope := (b[1] - a[1]) / (b[0] - a[0])
	if b[0] > width {
		b[1] -= float64((b[0] - width) * slope)
		b[0] = width
	}
	if a[0] < 0 {
		a[1] += float64((0 - a[0]) * slope)
		a[0] = 0
	}
	// The ends above and below the grid are cut off where that saves steps. One past the lower edge to
	// the right does not touch it, as in GDAL: at the edge a rounding error would decide.
	switch {
	case slope > 0 && a[1] < 0:
		a = orb.Point{a[0] + float64((0-a[1])/slope), 0}
	case slope < 0 && a[1] >= height:
		a = orb.Point{a[0] + float64((height-a[1])/slope), height}
	}
	if slope < 0 && b[1] < 0 {
		b[0] -= float64(b[1] / slope)
	}
	x, y := a[0], a[1]
	// A line passes through at most one pixel for each edge that it crosses; rounding may take a few steps more.
	for range 4*(d.Width+d.Height) + 16 {
		if !(x >= 0 && x < b[0]) || slope > 0 && y >= height {
			return
		}
		row := math.Floor(y)
		d.span(int(row), int(x), int(x)+1)
		right := math.Floor(x+1) - x
		down := float64(right * slope)
		switch {
		case math.Floor(y+down) == row:
		case slope < 0:
			down = min(row-y, -least)
			right = down / slope
		default:
			down = max(row+1-y, least)
			right = down / slope
		}
		x, y = x+right, y+down
	}
}
