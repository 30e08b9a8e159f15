package crs

import (
	"cmp"
	"fmt"
	"math"
)

// Box is a rectangle in a CRS. In longitude and latitude it may cross the antimeridian: then its
// east is over 180.
type Box struct {
	West, South, East, North float64

	code int
	crs  *CRS // nil: unknown to the package
}

// maxExtent limits coordinates. No place on Earth has a larger one in any unit.
const maxExtent = 1e12

// NewBox returns the box (west, south, east, north) in the CRS with an EPSG code; 0 is 4326, longitude and latitude.
//
// In longitude and latitude a west greater than the east crosses the antimeridian, as in GeoJSON
// (RFC 7946, section 5.2) and STAC. Longitudes are from -180 to 180 or from 0 to 360. South of
// north is an error, with one exception: if both pairs are swapped and the box would be over 180
// degrees wide across the antimeridian, its corners were given in the other order, and it is the
// box between them, as tacoreader has it.
//
// A CRS that is unknown to the package is allowed: the box can be compared with rasters in the
// same CRS.
func NewBox(sides [4]float64, epsg int) (Box, error) {
	epsg = cmp.Or(epsg, 4326)
	system, ok := ByCode(epsg)
	box := Box{West: sides[0], South: sides[1], East: sides[2], North: sides[3], code: epsg}
	if ok {
		box.crs = system
	}
	text := fmt.Sprintf("bbox is (%v, %v, %v, %v)", sides[0], sides[1], sides[2], sides[3])
	for _, side := range sides {
		if !(math.Abs(side) <= maxExtent) {
			return box, fmt.Errorf("%s: west, south, east and north must be finite numbers up to 1e12", text)
		}
	}
	turns := ok && system.Geographic()
	if box.South > box.North && box.West > box.East && turns && box.West-box.East <= 180 {
		box.West, box.South, box.East, box.North = box.East, box.North, box.West, box.South
	}
	if box.South > box.North {
		return box, fmt.Errorf("%s: its south, %v, is greater than its north, %v: the order is west, south, "+
			"east, north", text, box.South, box.North)
	}
	if !turns {
		if box.West > box.East {
			return box, fmt.Errorf("%s: its west, %v, is greater than its east, %v; only boxes of longitude and "+
				"latitude go across the antimeridian", text, box.West, box.East)
		}
		return box, nil
	}
	if box.South < -90 || box.North > 90 {
		return box, fmt.Errorf("%s: latitudes of EPSG:%d are -90 to 90 degrees; say bbox_crs for a box in "+
			"another CRS", text, epsg)
	}
	if min(box.West, box.East) < -180 || max(box.West, box.East) > 360 || box.East-box.West > 360 {
		return box, fmt.Errorf("%s: longitudes of EPSG:%d are -180 to 180 degrees; say bbox_crs for a box in "+
			"another CRS", text, epsg)
	}
	if box.West > box.East {
		box.East += 360
	}
	return box, nil
}

// CRS returns the CRS of the box, or false if the package does not know it.
func (b Box) CRS() (*CRS, bool) { return b.crs, b.crs != nil }

// Code returns the EPSG code of the box's CRS.
func (b Box) Code() int { return b.code }

// turns reports whether x is a longitude, which repeats every 360 degrees.
func (b Box) turns() bool { return b.crs != nil && b.crs.Geographic() }

// Rectangles returns the box as closed rectangles (minx, miny, maxx, maxy) in its own CRS: one, or
// for longitude and latitude all that describe the same place with longitudes from -540 to 540.
func (b Box) Rectangles() [][4]float64 {
	switch {
	case !b.turns():
		return [][4]float64{{b.West, b.South, b.East, b.North}}
	case b.East-b.West >= 360:
		return [][4]float64{{-540, b.South, 540, b.North}}
	}
	var list [][4]float64
	for _, turn := range []float64{0, -360, 360} {
		if b.West+turn <= 540 && b.East+turn >= -540 {
			list = append(list, [4]float64{b.West + turn, b.South, b.East + turn, b.North})
		}
	}
	return list
}

// In projects the box to the CRS with an EPSG code. The error says which of the two CRSs is
// unknown, or that the box is off the map.
func (b Box) In(epsg int) (*Region, error) {
	if epsg == b.code && !b.turns() {
		return &Region{parts: [][]Edge{edges(nil, rectangle(b.West, b.South, b.East, b.North))}}, nil
	}
	system, ok := ByCode(epsg)
	if !ok {
		return nil, fmt.Errorf("EPSG:%d is none of the CRSs that a box can be taken to", epsg)
	}
	if b.crs == nil {
		return nil, fmt.Errorf("bbox_crs is EPSG:%d, none of the CRSs that a box can be taken from: it can be "+
			"compared only with what is in EPSG:%d too", b.code, b.code)
	}
	outline, err := b.outline()
	if err != nil {
		return nil, err
	}
	region := &Region{}
	for _, piece := range outline.cut(system) {
		region.parts = append(region.parts, system.draw(piece, outline.all))
	}
	return region, nil
}

// rectangle returns the corners of a rectangle, closed.
func rectangle(x0, y0, x1, y1 float64) []Point {
	return []Point{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}, {x0, y0}}
}

// boxOutline is a closed ring of longitudes and latitudes on WGS 84 in one piece: longitudes continue past 180.
type boxOutline struct {
	ring []Point
	all  bool // it goes once around the Earth
	band bool // and is all that lies between two latitudes
}

func (b Box) outline() (o boxOutline, err error) {
	if b.turns() {
		west, east := b.West, b.East
		if o.all = east-west >= 360; o.all {
			o.band, east = true, west+360
		}
		o.ring = rectangle(west, b.South, east, b.North)
		for i, point := range o.ring {
			// A ring around the Earth is not shifted, since a shift would open it.
			if !o.all {
				point[0], point[1] = b.crs.datum.to(point[0], point[1])
			}
			o.ring[i] = Point{point[0], max(-90, min(90, point[1]))}
		}
		return o, nil
	}
	convert := func(place Point) Point {
		xy := []Point{place}
		b.crs.Inverse(xy, xy)
		return xy[0]
	}
	// Sampling begins with eighths of a side, because a curve may meet its chord halfway between
	// two points by chance.
	o.ring = trace(rectangle(b.West, b.South, b.East, b.North), max(b.East-b.West, b.North-b.South)/8, onMap, convert)
	for i, point := range o.ring {
		if point[0] != point[0] {
			return o, fmt.Errorf("bbox (%v, %v, %v, %v) goes past the edge of the map of EPSG:%d", b.West, b.South,
				b.East, b.North, b.code)
		}
		if i > 0 {
			o.ring[i][0] = o.ring[i-1][0] + math.Remainder(point[0]-o.ring[i-1][0], 360)
		}
	}
	first, last := o.ring[0], o.ring[len(o.ring)-1]
	if o.all = math.Abs(last[0]-first[0]) > 180; o.all { // it goes around a pole
		pole := []Point{{0, 90}}
		b.crs.Forward(pole, pole)
		lat := -90.0
		if place := pole[0]; place[0] >= b.West && place[0] <= b.East && place[1] >= b.South && place[1] <= b.North {
			lat = 90
		}
		o.ring = append(o.ring, Point{last[0], lat}, Point{first[0], lat}, first)
	}
	return o, nil
}

// cut returns the parts of an outline on the map of a CRS, with the longitudes of the map.
func (o *boxOutline) cut(c *CRS) (pieces [][]Point) {
	west, east := math.Inf(1), math.Inf(-1)
	for _, point := range o.ring {
		west, east = min(west, point[0]), max(east, point[0])
	}
	if c.wide > 0 && o.band {
		return [][]Point{rectangle(c.lon0-540, max(c.south, o.ring[0][1]), c.lon0+540, min(c.north, o.ring[2][1]))}
	}
	middle := (west + east) / 2
	shift := c.lon0 + math.Remainder(middle-c.lon0, 360) - middle
	turns := []float64{0, -360, 360}
	low, high := c.lon0-c.reach, c.lon0+c.reach
	switch {
	case c.round:
		turns, low, high = turns[:1], math.Inf(-1), math.Inf(1)
	case c.wide > 0:
		low, high = math.Inf(-1), math.Inf(1)
	}
	for _, turn := range turns {
		ring := make([]Point, len(o.ring))
		for i, point := range o.ring {
			ring[i] = Point{point[0] + shift + turn, point[1]}
		}
		for axis, bounds := range [2][2]float64{{low, high}, {c.south, c.north}} {
			ring = clipRing(ring, axis, bounds[0], 1)
			ring = clipRing(ring, axis, bounds[1], -1)
		}
		if len(ring) > 0 {
			pieces = append(pieces, ring)
		}
	}
	return pieces
}

// clipRing returns the part of a closed ring where a coordinate is at least bound, or with sign -1
// at most (Sutherland and Hodgman).
func clipRing(ring []Point, axis int, bound, sign float64) (out []Point) {
	if math.IsInf(bound, 0) || len(ring) == 0 {
		return ring
	}
	in := func(p Point) bool { return sign*(p[axis]-bound) >= 0 }
	for i, point := range ring {
		if i > 0 && in(point) != in(ring[i-1]) {
			before := ring[i-1]
			part := (bound - before[axis]) / (point[axis] - before[axis])
			crossing := Point{before[0] + part*(point[0]-before[0]), before[1] + part*(point[1]-before[1])}
			crossing[axis] = bound
			out = append(out, crossing)
		}
		if in(point) {
			out = append(out, point)
		}
	}
	if len(out) > 0 && out[0] != out[len(out)-1] {
		out = append(out, out[0])
	}
	return out
}

// draw projects a closed ring and returns its edges. all says that it goes around the Earth.
func (c *CRS) draw(ring []Point, all bool) (list []Edge) {
	west, east := math.Inf(1), math.Inf(-1)
	for _, corner := range ring {
		west, east = min(west, corner[0]), max(east, corner[0])
	}
	convert := func(p Point) Point {
		lon, lat := c.datum.from(p[0], p[1])
		return c.place(lon, lat)
	}
	off := onGround / c.unit
	if c.Geographic() {
		off = onMap
	}
	for i, point := range ring[1:] {
		onSeam := point[0] == ring[i][0] && (point[0] == west || point[0] == east)
		if all && c.round && onSeam {
			continue // the two ends of the ring are the same place: there is no edge on the ground
		}
		list = edges(list, trace([]Point{ring[i], point}, 10, off, convert))
	}
	return list
}

// The largest distance of a straight line from the curve that it approximates. Datums that are
// taken to be equal are as far apart, so a smaller one would gain nothing.
const (
	onGround = 1.0  // metres
	onMap    = 1e-5 // degrees: about as much
)

// trace projects the corners of a line by to, with enough points between them that straight lines
// are no further than off from the curve. step is the longest line in units of the corners.
func trace(corners []Point, step, off float64, to func(Point) Point) []Point {
	out := []Point{to(corners[0])}
	for i, point := range corners[1:] {
		corner := corners[i]
		steps := 1
		if length := math.Hypot(point[0]-corner[0], point[1]-corner[1]); length > step && step > 0 {
			steps = int(min(108, math.Ceil(length/step))) // 1080 degrees in steps of 10
		}
		start, startImage := corner, out[len(out)-1]
		for k := 1; k <= steps; k++ {
			part := float64(k) / float64(steps)
			next := Point{corner[0] + part*(point[0]-corner[0]), corner[1] + part*(point[1]-corner[1])}
			if k == steps {
				next = point
			}
			image := to(next)
			out = halve(out, start, next, startImage, image, off, 10, to) // 1024 lines for one: 1e-6 of the sag
			start, startImage = next, image
		}
	}
	return out
}

// halve appends the points after a, up to b.
func halve(out []Point, a, b, startImage, endImage Point, off float64, depth int, to func(Point) Point) []Point {
	point := Point{(a[0] + b[0]) / 2, (a[1] + b[1]) / 2}
	middle := to(point)
	far := math.Hypot(middle[0]-(startImage[0]+endImage[0])/2, middle[1]-(startImage[1]+endImage[1])/2)
	if depth == 0 || !(far > off) {
		return append(out, endImage)
	}
	out = halve(out, a, point, startImage, middle, off, depth-1, to)
	return halve(out, point, b, middle, endImage, off, depth-1, to)
}

// Edge is a line from (x0, y0) to (x1, y1).
type Edge [4]float64

func edges(list []Edge, line []Point) []Edge {
	for i, point := range line[1:] {
		list = append(list, Edge{line[i][0], line[i][1], point[0], point[1]})
	}
	return list
}

// Region is a box projected to a CRS. In longitude and latitude, and on maps that continue past 360
// degrees, it has a part for each turn. It is safe for concurrent use.
type Region struct {
	parts [][]Edge // closed rings
}

// Meets reports whether a closed rectangle has a point in common with the region. The rectangle may be a point.
func (r *Region) Meets(minX, minY, maxX, maxY float64) bool {
	for _, part := range r.parts {
		for _, edge := range part {
			if _, _, ok := edge.Clip(minX, minY, maxX, maxY); ok {
				return true
			}
		}
	}
	return r.has(minX, minY)
}

// Holds reports whether no point of a rectangle lies outside of the region.
func (r *Region) Holds(minX, minY, maxX, maxY float64) bool {
	for _, part := range r.parts {
		for _, edge := range part {
			if low, high, ok := edge.Clip(minX, minY, maxX, maxY); ok {
				middle := (low + high) / 2
				x, y := edge[0]+middle*(edge[2]-edge[0]), edge[1]+middle*(edge[3]-edge[1])
				inside := x > minX && x < maxX && y > minY && y < maxY
				if inside && (edge[0] != edge[2] || edge[1] != edge[3]) {
					return false
				}
			}
		}
	}
	x, y := (minX+maxX)/2, (minY+maxY)/2
	return r.Meets(x, y, x, y)
}

// Crosses reports whether a straight line intersects the outline of a part.
func (r *Region) Crosses(x0, y0, x1, y1 float64) bool {
	side := func(startX, startY, endX, endY, x, y float64) float64 {
		return (endX-startX)*(y-startY) - (endY-startY)*(x-startX)
	}
	for _, part := range r.parts {
		for _, edge := range part {
			apartX := max(edge[0], edge[2]) < min(x0, x1) || min(edge[0], edge[2]) > max(x0, x1)
			apartY := max(edge[1], edge[3]) < min(y0, y1) || min(edge[1], edge[3]) > max(y0, y1)
			if apartX || apartY {
				continue
			}
			if side(edge[0], edge[1], edge[2], edge[3], x0, y0)*side(edge[0], edge[1], edge[2], edge[3], x1, y1) <= 0 &&
				side(x0, y0, x1, y1, edge[0], edge[1])*side(x0, y0, x1, y1, edge[2], edge[3]) <= 0 {
				return true
			}
		}
	}
	return false
}

// Corner returns a point of the outline.
func (r *Region) Corner() (x, y float64) {
	for _, part := range r.parts {
		for _, edge := range part {
			return edge[0], edge[1]
		}
	}
	return nan, nan
}

// Parts returns the parts as regions of their own.
func (r *Region) Parts() []*Region {
	list := make([]*Region, len(r.parts))
	for i := range r.parts {
		list[i] = &Region{parts: r.parts[i : i+1]}
	}
	return list
}

// has reports whether a point lies inside, by counting the edges to the right of it.
func (r *Region) has(x, y float64) bool {
	inside := false
	for _, part := range r.parts {
		for _, edge := range part {
			if (edge[1] > y) != (edge[3] > y) && x < (edge[2]-edge[0])*(y-edge[1])/(edge[3]-edge[1])+edge[0] {
				inside = !inside
			}
		}
	}
	return inside
}

// Clip returns the part of an edge that lies in a rectangle, as a range of 0 to 1 (Liang and Barsky), or false if they
// have no point in common.
func (e Edge) Clip(minX, minY, maxX, maxY float64) (low, high float64, ok bool) {
	// The quotients below, rounded, need not say that an edge whose ends are far away lies beyond a side.
	overlaps := max(e[0], e[2]) >= minX && min(e[0], e[2]) <= maxX && max(e[1], e[3]) >= minY && min(e[1], e[3]) <= maxY
	if !overlaps { // or an end is not a number
		return 0, 0, false
	}
	low, high = 0, 1
	dx, dy := e[2]-e[0], e[3]-e[1]
	for _, side := range [4][2]float64{{-dx, e[0] - minX}, {dx, maxX - e[0]}, {-dy, e[1] - minY}, {dy, maxY - e[1]}} {
		switch p, q := side[0], side[1]; {
		case p < 0:
			low = max(low, q/p)
		case p > 0:
			high = min(high, q/p)
		}
	}
	return low, high, low <= high
}
