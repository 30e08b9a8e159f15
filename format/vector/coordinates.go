package vector

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
)

// geometryKinds are the types of WKB by their names in GeoJSON. A MultiPoint is a Point plus 3, and so on.
var geometryKinds = map[string]uint32{"Point": 1, "LineString": 2, "Polygon": 3, "MultiPoint": 4,
	"MultiLineString": 5, "MultiPolygon": 6}

// collectionKind is the type of WKB of a GeometryCollection.
const collectionKind = 7

// maxNested bounds collections of geometries inside collections, as package wkb does.
const maxNested = 32

// textGeometry is a geometry of GeoJSON (RFC 7946, section 3.1).
type textGeometry struct {
	Type        string          `json:"type"`
	Coordinates json.RawMessage `json:"coordinates"`
	Geometries  []textGeometry  `json:"geometries"`
}

// appendWKB appends a geometry as WKB. Its lists are read one number after the other, so a list of a few bytes takes no
// memory. Parts without coordinates are left out.
func (g *textGeometry) appendWKB(dst []byte, depth int) ([]byte, error) {
	kind, known := geometryKinds[g.Type]
	switch {
	case known:
		text := &coordinateText{text: g.Coordinates, dst: dst}
		if text.geometry(kind); text.err == nil && text.peek() != 0 {
			text.fail("more follows the coordinates")
		}
		if text.err != nil {
			return nil, fault.New(fault.Corrupt, "geometry", "%s: %v", g.Type, text.err)
		}
		return text.dst, nil
	case g.Type != "GeometryCollection":
		return nil, fault.New(fault.Corrupt, "geometry", "type %q", fault.Short(g.Type))
	case depth == maxNested:
		return nil, fault.New(fault.Limit, "geometry", "collections %d deep", depth)
	}
	parts := slices.DeleteFunc(g.Geometries, func(g textGeometry) bool { return g.isEmptyPoint() })
	dst = appendHead(dst, collectionKind)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(parts)))
	for i := range parts {
		var err error
		if dst, err = parts[i].appendWKB(dst, depth+1); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// isEmptyPoint reports whether the geometry is a point without coordinates, which shapely writes of "POINT EMPTY". It
// lies nowhere.
func (g *textGeometry) isEmptyPoint() bool {
	list, ok := bytes.CutPrefix(bytes.TrimSpace(g.Coordinates), []byte("["))
	return ok && g.Type == "Point" && string(bytes.TrimSpace(list)) == "]"
}

func appendHead(dst []byte, kind uint32) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, 1), kind) // little-endian
}

// coordinateText is a text of lists of numbers in each other, which may become WKB.
type coordinateText struct {
	text []byte
	pos  int
	dst  []byte
	err  error // the first one
}

func (c *coordinateText) fail(text string) {
	if c.err == nil {
		c.err = errors.New(text)
	}
}

// peek returns the next character after blanks and commas, 0 at the end and after an error.
func (c *coordinateText) peek() byte {
	for c.err == nil && c.pos < len(c.text) {
		if char := c.text[c.pos]; char != ' ' && char != '\n' && char != '\t' && char != '\r' && char != ',' {
			return char
		}
		c.pos++
	}
	return 0
}

// items reads a list, and calls item before each of its items.
func (c *coordinateText) items(item func()) {
	switch c.peek() {
	case '[':
	case 'n':
		c.fail("a position with null")
	default:
		c.fail("it has no list where one must stand")
	}
	for c.pos++; ; {
		switch c.peek() {
		case 0:
			c.fail("a list without an end")
			return
		case ']':
			c.pos++
			return
		}
		item()
	}
}

// isOfNumber reports whether numbers have a character.
func isOfNumber(char byte) bool {
	switch char {
	case '+', '-', '.', 'e', 'E':
		return true
	}
	return char >= '0' && char <= '9'
}

// expect reads a character.
func (c *coordinateText) expect(char byte) {
	if c.peek() != char {
		c.fail("a string that is no number")
	}
	c.pos++
}

// number reads a number.
func (c *coordinateText) number() float64 {
	start := c.pos
	for c.pos < len(c.text) && isOfNumber(c.text[c.pos]) {
		c.pos++
	}
	x, err := strconv.ParseFloat(string(c.text[start:c.pos]), 64)
	if err != nil && c.peek() == 'n' {
		c.fail("a position with null")
	} else if err != nil {
		c.fail("a coordinate is not a number")
	}
	return x
}

// counted reads a list, drops the items that item refuses, and puts the number of the others in front of them.
func (c *coordinateText) counted(item func() (keep bool)) (count uint32) {
	pos := len(c.dst)
	c.dst = append(c.dst, 0, 0, 0, 0)
	c.items(func() {
		start := len(c.dst)
		if item() {
			count++
		} else {
			c.dst = c.dst[:start]
		}
	})
	binary.LittleEndian.PutUint32(c.dst[pos:], count)
	return count
}

// geometry appends a geometry of a type, and reports whether it has coordinates.
func (c *coordinateText) geometry(kind uint32) bool {
	c.dst = appendHead(c.dst, kind)
	switch kind {
	case 1:
		return c.position()
	case 2:
		return c.counted(c.position) > 0
	case 3:
		return c.counted(func() bool { // a ring, also an empty one
			c.counted(c.position)
			return true
		}) > 0
	}
	return c.counted(func() bool { return c.geometry(kind - 3) }) > 0
}

// position appends the first two numbers of a position.
func (c *coordinateText) position() bool {
	count := 0
	c.items(func() {
		if x := c.number(); count < 2 {
			c.dst = binary.LittleEndian.AppendUint64(c.dst, math.Float64bits(x))
		}
		count++
	})
	if count < 2 {
		c.fail("a position of fewer than two numbers")
	}
	return true
}
