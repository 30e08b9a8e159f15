// Package wkb compares geometries in well-known binary with a box, without building them. Well-known
// text is converted to binary first.
//
// It reads the seven simple feature types of OGC 06-103r4 in both byte orders, with Z, M or both (ISO
// codes 1000 to 3007 and the flags of PostGIS' EWKB, whose SRID it ignores). Curves, surfaces of
// triangles and the like are unsupported. Only x and y count.
package wkb

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/crs"
)

// Box is a closed rectangle.
type Box struct{ MinX, MinY, MaxX, MaxY float64 }

// Place is a region on Earth to compare geometries in longitude and latitude with.
//
// An edge of a geometry that spans more than 180 degrees of longitude goes the shorter way, across the antimeridian:
// uncut footprints look like this, although GeoJSON (RFC 7946, section 3.1.9) requires to cut them. One that spans more
// than 360 degrees goes around the Earth.
type Place struct {
	// Boxes are the region's copies one turn apart, with longitudes from -540 to 540 degrees.
	Boxes []Box
	// Regions replace Boxes if the region is a box of another CRS.
	Regions []*crs.Region
}

// NewPlace returns the place of a box.
func NewPlace(b crs.Box) (*Place, error) {
	place := &Place{}
	c, ok := b.CRS()
	if ok && c.Geographic() && c.Near() {
		for _, r := range b.Rectangles() {
			place.Boxes = append(place.Boxes, Box{r[0], r[1], r[2], r[3]})
		}
		return place, nil
	}
	region, err := b.In(4326)
	if err != nil {
		return nil, err
	}
	place.Regions = region.Parts()
	return place, nil
}

// Meets reports whether a box of longitudes from -180 to 180 degrees may have a point in common with the place. It
// never reports false for a box that contains a point of the place.
func (p *Place) Meets(b Box) bool {
	// 1e-9 degrees, 0.1 mm, is far above the rounding of the outline of a region and far below what pruning could gain.
	const margin = 1e-9
	for _, region := range p.Regions {
		for _, turn := range []float64{0, -360, 360} {
			if region.Meets(b.MinX+turn-margin, b.MinY-margin, b.MaxX+turn+margin, b.MaxY+margin) {
				return true
			}
		}
	}
	return slices.ContainsFunc(p.Boxes, b.Overlaps)
}

// Match reports whether a geometry matches the place. to converts a position of the geometry to longitude and latitude;
// nil if it has them already. An empty geometry matches nothing. Bytes that are not a geometry are fault.Corrupt, other
// types of geometry fault.Unsupported. It does not allocate.
func (p *Place) Match(wkb []byte, rule column.Rule, to func(x, y float64) (lon, lat float64)) (bool, error) {
	if to == nil && p.Regions == nil {
		point, apartAll := false, true
		for _, box := range p.Boxes {
			m, ok := matchPoint(wkb, box, rule)
			if m {
				return true, nil
			}
			point = point || ok
			apartAll = apartAll && (ok || apart(wkb, box))
		}
		// An edge across the antimeridian goes the other way around, so being apart as drawn says nothing of it.
		if point || apartAll && !wide(wkb) {
			return false, nil
		}
	}
	r, compared := reader{b: wkb, order: binary.LittleEndian}, scan{place: p, to: to}
	if err := r.each(0, func(kind uint32, size int) error { return compared.single(&r, kind, size) }); err != nil {
		return false, err
	}
	if rule == column.Within {
		return compared.inside && !compared.outside, nil
	}
	return compared.hit, nil
}

// NewBox returns the box of two opposite corners, in any order.
func NewBox(x0, y0, x1, y1 float64) Box {
	return Box{min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)}
}

// Overlaps reports whether two boxes have a point in common.
func (b Box) Overlaps(o Box) bool {
	return b.MinX <= o.MaxX && o.MinX <= b.MaxX && b.MinY <= o.MaxY && o.MinY <= b.MaxY
}

// contains reports whether a point lies in the box or on its edge.
func (b Box) contains(x, y float64) bool {
	return x >= b.MinX && x <= b.MaxX && y >= b.MinY && y <= b.MaxY
}

// inside reports whether a point lies in the box, not on its edge.
func (b Box) inside(x, y float64) bool {
	return x > b.MinX && x < b.MaxX && y > b.MinY && y < b.MaxY
}

// maxDepth bounds collections inside collections, because the reader recurses.
const maxDepth = 32

// Codes of the simple feature types.
const (
	point = iota + 1
	lineString
	polygon
	multiPoint
	multiLineString
	multiPolygon
	collection
)

// matchPoint is a fast path for the geometry that most tables hold: a little-endian point of two coordinates.
func matchPoint(w []byte, b Box, rule column.Rule) (match, ok bool) {
	const pointSize = 1 + 4 + 8 + 8 // the order of bytes, the type, x and y
	if len(w) != pointSize || [5]byte(w) != [5]byte{1, point} {
		return false, false
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(w[5:]))
	y := math.Float64frombits(binary.LittleEndian.Uint64(w[13:]))
	if rule == column.Within {
		return b.inside(x, y), true
	}
	return b.contains(x, y), true
}

// apart is a fast path for another common geometry, a little-endian polygon of one ring of two coordinates. It reports
// whether it certainly has no point in common with a box: most polygons of a table are far away.
func apart(w []byte, b Box) bool {
	if len(w) < 13 || [9]byte(w) != [9]byte{1, polygon, 0, 0, 0, 1} {
		return false
	}
	n := binary.LittleEndian.Uint32(w[9:])
	if w = w[13:]; uint64(n)*16 != uint64(len(w)) {
		return false
	}
	number := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(w[i:])) }
	// Is all of it on one side of the box?
	left, right, below, above := true, true, true, true
	for i := 0; i < len(w) && (left || right); i += 16 {
		x := number(i)
		left, right = left && x < b.MinX, right && x > b.MaxX
	}
	if left || right {
		return true
	}
	for i := 0; i < len(w) && (below || above); i += 16 {
		y := number(i + 8)
		below, above = below && y < b.MinY, above && y > b.MaxY
	}
	return below || above
}

// wide reports whether a polygon for which apart holds has an edge across the antimeridian.
func wide(w []byte) bool {
	w = w[13:]
	number := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(w[i:])) }
	for i := range len(w) / 16 {
		if math.Abs(number(16*i)-number((16*i+16)%len(w))) > 180 {
			return true
		}
	}
	return false
}

// reader reads well-known binary.
type reader struct {
	b     []byte
	off   int
	order binary.ByteOrder
}

func (r *reader) rest() int { return len(r.b) - r.off }

func (r *reader) corrupt(format string, args ...any) error {
	return fault.At(fault.Corrupt, "geometry", int64(r.off), format, args...)
}

func (r *reader) uint32() (uint32, error) {
	if r.rest() < 4 {
		return 0, r.corrupt("ends early")
	}
	number := r.order.Uint32(r.b[r.off:])
	r.off += 4
	return number, nil
}

// positions are the positions of a point, a line or a ring, as they are stored.
type positions struct {
	b     []byte
	size  int // bytes of a position
	order binary.ByteOrder
}

func (p positions) len() int { return len(p.b) / p.size }

func (p positions) at(i int) (x, y float64) {
	at := p.b[i*p.size:]
	return math.Float64frombits(p.order.Uint64(at)), math.Float64frombits(p.order.Uint64(at[8:]))
}

// rings calls visit with the positions of a point or line, or of each ring of a polygon, after its head.
func (r *reader) rings(kind uint32, size int, visit func(p positions)) (err error) {
	rings := 1
	if kind == polygon {
		rings, err = r.count(4)
	}
	for ; rings > 0 && err == nil; rings-- {
		count := 1
		if kind != point {
			count, err = r.count(size)
		} else if r.rest() < size {
			err = r.corrupt("ends early")
		}
		if err == nil {
			end := r.off + count*size
			visit(positions{r.b[r.off:end], size, r.order})
			r.off = end
		}
	}
	return err
}

// count reads a number of items of at least size bytes each.
func (r *reader) count(size int) (int, error) {
	items, err := r.uint32()
	if err != nil {
		return 0, err
	}
	if int64(items)*int64(size) > int64(r.rest()) {
		return 0, r.corrupt("%d items of %d bytes, %d bytes are left", items, size, r.rest())
	}
	return int(items), nil
}

// headSize is the bytes of a geometry's head.
const headSize = 1 + 4

// head reads the byte order and the type. size is the bytes of a position.
func (r *reader) head() (kind uint32, size int, err error) {
	if r.rest() < headSize {
		return 0, 0, r.corrupt("ends early")
	}
	switch r.b[r.off] {
	case 0:
		r.order = binary.BigEndian
	case 1:
		r.order = binary.LittleEndian
	default:
		return 0, 0, r.corrupt("byte order %d", r.b[r.off])
	}
	code := r.order.Uint32(r.b[r.off+1:])
	r.off += headSize
	const flagZ, flagM, flagSRID = 1 << 31, 1 << 30, 1 << 29
	dims := 2
	if code&flagZ != 0 {
		dims++
	}
	if code&flagM != 0 {
		dims++
	}
	if code&flagSRID != 0 {
		if _, err := r.uint32(); err != nil {
			return 0, 0, err
		}
	}
	code &^= flagZ | flagM | flagSRID
	switch code / 1000 {
	case 0:
	case 1, 2:
		dims++
	case 3:
		dims += 2
	default:
		dims += 3
	}
	kind = code % 1000
	if dims > 4 || kind < point || kind > collection {
		return 0, 0, fault.At(fault.Unsupported, "geometry", int64(r.off-4), "type %d", code)
	}
	return kind, dims * 8, nil
}

// each calls single for each point, line and polygon of a geometry, after its head.
func (r *reader) each(depth int, single func(kind uint32, size int) error) error {
	kind, size, err := r.head()
	if err != nil {
		return err
	}
	if kind <= polygon {
		return single(kind, size)
	}
	n, err := r.parts(depth)
	for ; n > 0 && err == nil; n-- {
		err = r.each(depth+1, single)
	}
	return err
}

// parts reads the number of parts of a collection in so many others.
func (r *reader) parts(depth int) (int, error) {
	if depth == maxDepth {
		return 0, fault.At(fault.Limit, "geometry", int64(r.off), "collections %d deep", depth)
	}
	return r.count(headSize)
}

// Point reads a geometry that must be a point, and returns its first two coordinates, NaN for an empty point.
// Another geometry is fault.Unsupported.
func Point(wkb []byte) (x, y float64, err error) {
	in := &reader{b: wkb}
	kind, size, err := in.head()
	if err == nil && kind != point {
		err = fault.New(fault.Unsupported, "geometry", "type %d is not a point", kind)
	}
	if err == nil {
		err = in.rings(kind, size, func(p positions) { x, y = p.at(0) })
	}
	return x, y, err
}

// AppendPoint appends a point in well-known binary: little-endian, without a further coordinate.
func AppendPoint(dst []byte, x, y float64) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, 1), point)
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(y))
}

// scan compares a geometry with a box while it reads the coordinates.
type scan struct {
	place *Place // compare with all its copies
	to    func(x, y float64) (float64, float64)

	box    Box
	region *crs.Region // replaces box

	across bool    // a ring of the polygon crossed the antimeridian,
	start  float64 // and began at this longitude

	hit     bool // a point in common
	inside  bool // a part of it lies inside
	outside bool // a part of it lies outside
}

// single takes in a point, line or polygon. It compares it with each copy of the place; it lies outside the place if it
// lies outside all copies.
func (s *scan) single(r *reader, kind uint32, size int) error {
	start, outside := r.off, true
	for i := range max(len(s.place.Boxes), len(s.place.Regions)) {
		turn := scan{to: s.to}
		if len(s.place.Regions) > 0 {
			turn.region = s.place.Regions[i]
			turn.box.MinX, turn.box.MinY = turn.region.Corner()
		} else {
			turn.box = s.place.Boxes[i]
		}
		r.off = start
		if err := turn.one(r, kind, size); err != nil {
			return err
		}
		s.hit, s.inside, outside = s.hit || turn.hit, s.inside || turn.inside, outside && turn.outside
	}
	s.outside = s.outside || outside
	return nil
}

// one takes in a point, line or polygon. If no edge of a polygon meets the box, the box lies wholly inside or outside
// the polygon, and one corner of it tells which.
func (s *scan) one(r *reader, kind uint32, size int) error {
	crossings, box := 0, noBox
	err := r.rings(kind, size, func(p positions) {
		switch kind {
		case point:
			x, y := p.at(0)
			if s.to != nil {
				x, y = s.to(x, y)
			}
			s.vertex(x, y)
		case lineString:
			s.path(p, nil)
		case polygon:
			s.path(p, &crossings)
			box.grow(p)
		}
	})
	if crossings%2 == 1 && !s.hit {
		s.hit, s.outside = true, true
	}
	// A polygon that fills the box exactly has all its vertices on the edges, but its interior inside.
	if s.hit && !s.outside && box.MaxX > box.MinX && box.MaxY > box.MinY {
		s.inside = true
	}
	return err
}

// vertex takes in a position. One that is not a number, which is an empty point, is ignored.
func (s *scan) vertex(x, y float64) {
	switch {
	case s.region != nil:
		in := s.region.Meets(x, y, x, y)
		s.hit, s.inside, s.outside = s.hit || in, s.inside || in, s.outside || !in && x == x && y == y
	case s.box.contains(x, y):
		s.hit = true
		s.inside = s.inside || s.box.inside(x, y)
	case x == x && y == y:
		s.outside = true
	}
}

// path takes in the segments between positions. If crossings is set, it counts the segments that a ray from the box's
// lower left corner to the right meets.
func (s *scan) path(p positions, crossings *int) {
	var fx, fy, px, py float64 // the last position in the file's CRS, and in longitude and latitude
	var first, north, last, turn float64
	step := func(x, y float64) {
		s.vertex(x, y)
		s.segment(px, py, x, y)
		if crossings != nil && (py > s.box.MinY) != (y > s.box.MinY) && s.box.MinX < (x-px)*(s.box.MinY-py)/(y-py)+px {
			*crossings++
		}
		px, py = x, y
	}
	count := p.len()
	if crossings != nil && count != 0 && !bytes.Equal(p.b[:p.size], p.b[len(p.b)-p.size:]) {
		count++ // the ring is not closed: go back to its first position
	}
	for i := range count {
		x, y := p.at(i % p.len())
		parts := 1
		if s.to != nil && i > 0 {
			parts = linePieces
		}
		for k := 1; k <= parts; k++ {
			mx, my := x, y
			if k < parts {
				t := float64(k) / linePieces
				mx, my = fx+t*(x-fx), fy+t*(y-fy)
			}
			if s.to != nil {
				mx, my = s.to(mx, my)
			}
			lon := mx
			switch far := mx - last; {
			case i == 0 && s.across: // a hole in a ring that crossed: take the copy near the ring
				turn = s.start + math.Remainder(mx-s.start, 360) - mx
			case i > 0 && math.Abs(far) > 180 && (math.Abs(far) < 360 || s.to != nil):
				turn -= math.Copysign(360, far)
				s.across = true
			}
			if last, mx = lon, mx+turn; i == 0 {
				px, py, first = mx, my, mx
			}
			step(mx, my)
			north += my
		}
		fx, fy = x, y
	}
	if crossings == nil {
		return
	}
	// The ring goes around a pole, so it needs to be closed there.
	if math.Abs(px-first) > 180 && s.across {
		x, y, pole := px, py, math.Copysign(90, north)
		step(x, pole)
		step(first, pole)
		step(first, y)
	}
	s.start = first
}

// linePieces is how many pieces an edge in another CRS is cut into before conversion to longitude and latitude. An edge
// of 100 km bends by up to some 300 m; 300 m / 16² is an error of about 1 m.
const linePieces = 16

func (s *scan) segment(x0, y0, x1, y1 float64) {
	if s.region != nil {
		if s.region.Crosses(x0, y0, x1, y1) {
			s.hit, s.outside = true, true
		}
		return
	}
	if s.hit && s.inside {
		return
	}
	if _, _, meets := (crs.Edge{x0, y0, x1, y1}).Clip(s.box.MinX, s.box.MinY, s.box.MaxX, s.box.MaxY); meets {
		s.hit = true
		s.inside = s.inside || s.box.inside((x0+x1)/2, (y0+y1)/2) // unless an end is outside, which s.outside says
	}
}
