package vectors

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/vector/clip"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/shapes"
	"github.com/chaski-eo/chaski/loader/spec"
)

func (p *picture) Cut(ctx context.Context, bound int64) (out shapes.Cut, _ error) {
	v := p.field
	convert, ok := p.Pixels()
	if !ok {
		return out, p.noInverse()
	}
	size := v.To.Size()
	err := p.visit(ctx, func(row uint32, element [8]byte, shape orb.Geometry) error {
		shape = eachPoint(shape, func(list []orb.Point) {
			for i, vertex := range list {
				list[i] = convert(vertex)
			}
		})
		found := false
		if v.Vector.Kind == spec.BoxVector {
			found = p.addBox(&out, shape)
		} else {
			parts, kind := polygonsOf(nil, shape)
			if kind != "" {
				return fault.New(fault.Unsupported, fmt.Sprintf("shape %d", row),
					"it has a %s: kind %q takes polygons only", kind, spec.PolygonVector)
			}
			found = p.addPolygons(&out, parts, len(out.Values)/size)
		}
		if found {
			out.Values = append(out.Values, element[:size]...)
			v.addMore(&out, p.file.layer.Columns, int(row))
		}
		if out.Bytes() > bound {
			return pixels.OverMemory(fmt.Sprintf("field %q", v.Name), 1, " of shapes", bound)
		}
		return nil
	})
	return out, err
}

// addMore adds the elements of Vector.Columns of a shape. Where it has no value, they are NaN, or 0 of whole numbers.
func (v *field) addMore(c *shapes.Cut, columns []*tables.Vector, row int) {
	if c.More == nil {
		c.More = make([][]byte, len(columns))
	}
	for i, values := range columns {
		if v.More[i] == chunk.Int64 {
			number := int64(0)
			if !values.Null(row) && values.Kind() == tables.Int64 {
				number = values.Int(row)
			}
			c.More[i] = binary.LittleEndian.AppendUint64(c.More[i], uint64(number))
			continue
		}
		x := math.NaN()
		switch {
		case values.Null(row):
		case values.Kind() == tables.Float64:
			x = values.Float(row)
		case values.Kind() == tables.Int64:
			x = float64(values.Int(row))
		}
		c.More[i] = binary.LittleEndian.AppendUint32(c.More[i], math.Float32bits(float32(x)))
	}
}

// addPolygons adds a shape of polygons in pixels, cut to the window, and reports whether anything lies in it.
func (p *picture) addPolygons(c *shapes.Cut, parts []orb.Polygon, number int) bool {
	part := 0
	for _, s := range parts {
		if rings := clip.Polygon(s, float64(p.Width), float64(p.Height)); len(rings) > 0 {
			p.addRings(c, rings, number, part)
			part++
		}
	}
	return part > 0
}

// addRings adds the rings of a polygon.
func (p *picture) addRings(c *shapes.Cut, rings []clip.Ring, number, part int) {
	for _, ring := range rings {
		hole := int32(0)
		if ring.Hole {
			hole = 1
		}
		c.Rings = append(c.Rings, int32(number), int32(part), int32(len(ring.Points)), hole)
		start := len(c.Coords)
		for _, vertex := range ring.Points {
			x, y := p.turnPoint(vertex)
			c.Coords = append(c.Coords, x, y)
		}
		if p.mirrors() { // which turns the ring the other way round
			list := c.Coords[start:]
			for i, k := 0, len(list)-2; i < k; i, k = i+2, k-2 {
				list[i], list[k] = list[k], list[i]
				list[i+1], list[k+1] = list[k+1], list[i+1]
			}
		}
	}
}

// addBox adds the box around what of a shape in pixels lies in the window, and reports whether anything does.
func (p *picture) addBox(c *shapes.Cut, shape orb.Geometry) bool {
	box := bounds{float32(math.Inf(1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.Inf(-1))}
	p.grow(&box, shape)
	if !(box[0] <= box[2]) {
		return false
	}
	c.Coords = append(c.Coords, box[:]...)
	return true
}

// bounds are the sides of a box: least x and y, greatest x and y.
type bounds [shapes.BoxWidth]float32

// grow makes a box hold what of a shape lies in the window.
func (p *picture) grow(b *bounds, shape orb.Geometry) {
	width, height := float64(p.Width), float64(p.Height)
	add := func(at orb.Point) {
		x, y := p.turnPoint(at)
		b[0], b[1], b[2], b[3] = min(b[0], x), min(b[1], y), max(b[2], x), max(b[3], y)
	}
	switch s := shape.(type) {
	case orb.Point:
		if s[0] >= 0 && s[0] < width && s[1] >= 0 && s[1] < height { // as a pixel is covered
			add(s)
		}
	case orb.LineString:
		for i := 1; i < len(s); i++ {
			if first, last, ok := clip.Segment(s[i-1], s[i], width, height); ok && first != last {
				add(first)
				add(last)
			}
		}
	case orb.Polygon:
		for _, r := range clip.Polygon(s, width, height) {
			for _, vertex := range r.Points {
				add(vertex)
			}
		}
	case orb.Collection:
		for _, part := range s {
			p.grow(b, part)
		}
	}
}
