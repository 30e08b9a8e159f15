package warp

import (
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/internal/crs"
)

// Raster says where the pixels lie of a raster, or of a window that is to be made.
type Raster struct {
	CRS *crs.CRS
	// Transform maps the corner of pixel (row, col) to the ground, like GDAL's geotransform:
	// X = t[0] + col·t[1] + row·t[2], Y = t[3] + col·t[4] + row·t[5].
	Transform     [6]float64
	Height, Width int
}

// ground returns the point of a place in pixels.
func (r *Raster) ground(x, y float64) crs.Point { return crs.At(&r.Transform, x, y) }

// Box is a half-open rectangle of pixels. An empty one has Y1 <= Y0 or X1 <= X0.
type Box struct{ Y0, X0, Y1, X1 int }

// Empty reports whether the box has no pixel.
func (b Box) Empty() bool { return b.Y1 <= b.Y0 || b.X1 <= b.X0 }

// holds reports whether o lies in b.
func (b Box) holds(o Box) bool {
	rows, columns := o.Y0 >= b.Y0 && o.Y1 <= b.Y1, o.X0 >= b.X0 && o.X1 <= b.X1
	return o.Empty() || rows && columns
}

// join returns the box around both.
func (b Box) join(o Box) Box {
	switch {
	case b.Empty():
		return o
	case o.Empty():
		return b
	}
	return Box{min(b.Y0, o.Y0), min(b.X0, o.X0), max(b.Y1, o.Y1), max(b.X1, o.X1)}
}

// Mapping says where the pixels of a window lie in a raster. It does not change, and is safe for use by several
// goroutines.
type Mapping struct {
	height, width int // of the window
	raster        Box // all of it
	cells         []pixelCell
	// radius is how far the tent of Antialias reaches from its middle, in source pixels: one pixel of
	// the coarser of both grids.
	radiusY, radiusX float64
	scaleY, scaleX   float64 // see Scale
}

// sourcePlace is a place in the source raster in units of 2^-32 pixels, from the corner of its first pixel.
type sourcePlace struct{ x, y int64 }

const (
	one  = 1 << 32
	half = one / 2
	// far is a place outside of every raster. Places are at most this far away, so sums of two do not overflow.
	far = 1 << 30 * one
	// maxSide limits the sides of rasters and windows: far is past it.
	maxSide = 1 << 29
)

// pixelCell is a rectangle of pixels of the window. The places of its pixels are bilinear between the places of
// its corners: the centres of its first and last pixels.
type pixelCell struct {
	y, x, h, w int
	at         [2][2]sourcePlace
}

const (
	// maxCell is the side of the largest cell: the boxes of cells follow a rotated window more closely
	// than one box does.
	maxCell = 128
	// maxFlat is the same where windows are not rotated. It bounds the sum of the rounding of steps.
	maxFlat = 1 << 14
	// deadCell is the side of the largest cell that is given up if no point of it has a place.
	deadCell = 16
	// maxOff is the largest error at the middle of a cell and of its sides, in source pixels. There a
	// bilinear surface is farthest from one of second order, which projections are nearly; 0.05 is
	// promised.
	maxOff = 0.02
)

// NewMapping returns the mapping from a window to a raster. Its error has kind unsupported if a CRS
// cannot be converted exactly to the other (see crs.NewTransform).
func NewMapping(window, raster Raster) (*Mapping, error) {
	if min(window.Height, window.Width, raster.Height, raster.Width) < 1 ||
		max(window.Height, window.Width, raster.Height, raster.Width) > maxSide {
		return nil, fmt.Errorf("a window of %d by %d pixels and a raster of %d by %d: sides are 1 to %d pixels",
			window.Height, window.Width, raster.Height, raster.Width, maxSide)
	}
	transform, err := crs.NewTransform(window.CRS, raster.CRS)
	if err != nil {
		return nil, err
	}
	mapping := &Mapping{height: window.Height, width: window.Width, raster: Box{0, 0, raster.Height, raster.Width}}
	cells := builder{m: mapping, window: &window, t: transform}
	if err := cells.invert(&raster); err != nil {
		return nil, err
	}
	side := maxCell
	upright := window.Transform[2] == 0 && window.Transform[4] == 0
	if upright && transform.Same() && cells.inverse[1] == 0 && cells.inverse[3] == 0 {
		side = maxFlat
	}
	for y := 0; y < window.Height; y += side {
		for x := 0; x < window.Width; x += side {
			cells.add(y, x, min(side, window.Height-y), min(side, window.Width-x))
		}
	}
	mapping.setRadius()
	return mapping, nil
}

// builder makes the cells of a mapping.
type builder struct {
	m       *Mapping
	window  *Raster
	t       *crs.Transform
	origin  crs.Point  // of the raster
	inverse [4]float64 // ground, from the origin, to pixels: x = i[0]·X + i[1]·Y, y = i[2]·X + i[3]·Y
	wide    float64    // x of the ground repeats after this, and is taken nearest to middle; 0 if it does not
	middle  float64
	points  [9]crs.Point
}

// invert sets what leads from the ground to pixels of the raster.
func (b *builder) invert(r *Raster) error {
	transform := &r.Transform
	determinant := transform[1]*transform[5] - transform[2]*transform[4]
	for _, number := range append(transform[:], b.window.Transform[:]...) {
		determinant += 0 * number // NaN if one is not finite
	}
	if !(math.Abs(determinant) > 0) || math.IsInf(determinant, 0) {
		return fmt.Errorf("transform %v has no inverse", *transform)
	}
	b.origin = crs.Point{transform[0], transform[3]}
	b.inverse = [4]float64{
		transform[5] / determinant, -transform[2] / determinant,
		-transform[4] / determinant, transform[1] / determinant,
	}
	b.wide = r.CRS.Width()
	b.middle = r.ground(float64(r.Width)/2, float64(r.Height)/2)[0]
	return nil
}

// The points at which a cell is computed exactly: its corners, the middle, and the middles of its sides.
var sites = [9][2]float64{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0.5, 0.5}, {0, 0.5}, {0.5, 0}, {1, 0.5}, {0.5, 1}} // y, x

// add adds the cells of a rectangle of the window. Parts that lie off the raster get none.
func (b *builder) add(y, x, h, w int) {
	for i, site := range sites {
		b.points[i] = b.window.ground(float64(x)+0.5+site[1]*float64(w-1), float64(y)+0.5+site[0]*float64(h-1))
	}
	b.t.Points(b.points[:], b.points[:])
	for i, point := range b.points {
		if b.wide > 0 && math.Abs(point[0]-b.middle) > b.wide/2 {
			point[0] = b.middle + math.Remainder(point[0]-b.middle, b.wide)
		}
		dx, dy := point[0]-b.origin[0], point[1]-b.origin[1]
		b.points[i] = crs.Point{dx*b.inverse[0] + dy*b.inverse[1], dx*b.inverse[2] + dy*b.inverse[3]}
	}
	switch {
	case b.outside(h, w):
	case h <= 2 && w <= 2 || b.flat():
		b.m.cells = append(b.m.cells, pixelCell{y, x, h, w, [2][2]sourcePlace{
			{fixed(b.points[0]), fixed(b.points[1])}, {fixed(b.points[2]), fixed(b.points[3])},
		}})
	case h >= w:
		b.add(y, x, h/2, w)
		b.add(y+h/2, x, h-h/2, w)
	default:
		b.add(y, x, h, w/2)
		b.add(y, x+w/2, h, w-w/2)
	}
}

// grain is the parts of a pixel to which places of corners are rounded: 1e-6 pixels hide the last bits
// of transforms and of projections, in which machines differ, so a place on the edge or in the
// middle of a pixel is exactly there.
const grain = 1 << 20

// fixed rounds a place. One that is far away, or no place, becomes one outside of the raster.
func fixed(p crs.Point) sourcePlace {
	if !(math.Abs(p[0]) < maxSide && math.Abs(p[1]) < maxSide) {
		return sourcePlace{-far, -far}
	}
	return sourcePlace{int64(math.Round(p[0]*grain)) * (one / grain), int64(math.Round(p[1]*grain)) * (one / grain)}
}

// flat reports whether the places of the points are bilinear between the corners'.
func (b *builder) flat() bool {
	points := &b.points
	for i, site := range sites {
		for axis := range 2 {
			top := points[0][axis] + site[1]*(points[1][axis]-points[0][axis])
			bottom := points[2][axis] + site[1]*(points[3][axis]-points[2][axis])
			off := top + site[0]*(bottom-top) - points[i][axis]
			if !(math.Abs(off) <= maxOff && math.Abs(points[i][axis]) < maxSide) {
				return false
			}
		}
	}
	return true
}

// outside reports whether a whole cell lies off the raster. It does if all points tried lie past the same side by
// more than half of their extent (unless the cell is strongly curved, its other points lie between them), or if it is
// small and none of them has a place.
func (b *builder) outside(h, w int) bool {
	low, high := crs.Point{math.Inf(1), math.Inf(1)}, crs.Point{math.Inf(-1), math.Inf(-1)}
	none, every := true, true
	for _, point := range b.points {
		if point[0] != point[0] || point[1] != point[1] {
			every = false
			continue
		}
		none = false
		for axis := range 2 {
			low[axis], high[axis] = min(low[axis], point[axis]), max(high[axis], point[axis])
		}
	}
	if none || !every {
		return none && max(h, w) <= deadCell
	}
	size := [2]float64{float64(b.m.raster.X1), float64(b.m.raster.Y1)}
	for axis := range 2 {
		margin := (high[axis]-low[axis])/2 + 1
		if low[axis]-margin > size[axis] || high[axis]+margin < 0 {
			return true
		}
	}
	return false
}

// setRadius takes the mean distance of neighbouring pixels of the window, in pixels of the raster.
func (m *Mapping) setRadius() {
	var sumX, sumY, total float64
	for i := range m.cells {
		cell := &m.cells[i]
		if cell.h < 2 || cell.w < 2 {
			continue
		}
		place, east, south := cell.at[0][0], cell.at[0][1], cell.at[1][0]
		side := func(e, s int64) float64 {
			return math.Hypot(float64(e)/float64(cell.w-1), float64(s)/float64(cell.h-1)) / one
		}
		area := float64(cell.h * cell.w)
		sumX += area * side(east.x-place.x, south.x-place.x)
		sumY += area * side(east.y-place.y, south.y-place.y)
		total += area
	}
	round := func(r float64) float64 {
		if r < 1.05 { // GDAL too takes grids for equally fine within this
			return 1
		}
		return r
	}
	m.scaleX, m.scaleY = sumX/max(total, 1), sumY/max(total, 1)
	m.radiusX, m.radiusY = round(m.scaleX), round(m.scaleY)
}

// Scale returns how many rows and columns of the raster lie between neighbouring pixels of the window, in the mean: 2
// if its pixels are half as large. They are 0 if the window misses the raster, or is one pixel wide or high.
func (m *Mapping) Scale() (y, x float64) { return m.scaleY, m.scaleX }

// Raster returns the size of the raster.
func (m *Mapping) Raster() (height, width int) { return m.raster.Y1, m.raster.X1 }

// Shift reports whether the window lies on the grid of the raster: pixel (i, j) of the window is then pixel (i+y,
// j+x) of the raster, if the raster has it.
func (m *Mapping) Shift() (y, x int, ok bool) {
	for i := range m.cells {
		cell := &m.cells[i]
		if i == 0 {
			y, x = int(cell.at[0][0].y>>32)-cell.y, int(cell.at[0][0].x>>32)-cell.x
		}
		for corner := range 4 {
			down, right := corner/2, corner%2
			want := sourcePlace{int64(x+cell.x+right*(cell.w-1))*one + half, int64(y+cell.y+down*(cell.h-1))*one + half}
			if cell.at[down][right] != want {
				return 0, 0, false
			}
		}
	}
	return y, x, len(m.cells) > 0
}

// row returns the place of the first pixel of row i of a cell, and the step from one pixel to the next.
func (c *pixelCell) row(i int) (from, step sourcePlace) {
	between := func(a, b int64, k, steps int) int64 {
		if steps == 0 {
			return a
		}
		// Places may be far apart: divided first, the products fit.
		distance := b - a
		return a + distance/int64(steps)*int64(k) + distance%int64(steps)*int64(k)/int64(steps)
	}
	left := sourcePlace{between(c.at[0][0].x, c.at[1][0].x, i, c.h-1), between(c.at[0][0].y, c.at[1][0].y, i, c.h-1)}
	right := sourcePlace{between(c.at[0][1].x, c.at[1][1].x, i, c.h-1), between(c.at[0][1].y, c.at[1][1].y, i, c.h-1)}
	if steps := int64(c.w - 1); steps > 0 {
		step = sourcePlace{(right.x - left.x) / steps, (right.y - left.y) / steps}
	}
	return left, step
}
