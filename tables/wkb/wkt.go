package wkb

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

var wktNames = [...]string{point: "POINT", lineString: "LINESTRING", polygon: "POLYGON", multiPoint: "MULTIPOINT",
	multiLineString: "MULTILINESTRING", multiPolygon: "MULTIPOLYGON", collection: "GEOMETRYCOLLECTION"}

// AppendText appends the well-known binary of a geometry in well-known text ("POINT (-6 40)"): the seven simple feature
// types, x and y of each position. It ignores EWKT's SRID.
func AppendText(dst []byte, text string) ([]byte, error) {
	p := textParser{s: text, dst: dst}
	if strings.HasPrefix(strings.ToUpper(text), "SRID=") {
		p.off = strings.IndexByte(text, ';') + 1
	}
	if err := p.geometry(0); err != nil {
		return dst, err
	}
	if p.blanks(); p.off != len(p.s) {
		return dst, p.corrupt("text follows the geometry")
	}
	return p.dst, nil
}

// textParser parses well-known text and appends well-known binary.
type textParser struct {
	s   string
	off int
	dst []byte
}

func (p *textParser) corrupt(what string) error {
	return fault.New(fault.Corrupt, "geometry", int64(p.off), "%s", what)
}

func (p *textParser) blanks() {
	for p.off < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.off]) >= 0 {
		p.off++
	}
}

// next takes the character c if it is the next one.
func (p *textParser) next(c byte) bool {
	p.blanks()
	if p.off < len(p.s) && p.s[p.off] == c {
		p.off++
		return true
	}
	return false
}

// word takes the letters that follow, in upper case.
func (p *textParser) word() string {
	p.blanks()
	start := p.off
	for p.off < len(p.s) && (p.s[p.off]|0x20) >= 'a' && (p.s[p.off]|0x20) <= 'z' {
		p.off++
	}
	return strings.ToUpper(p.s[start:p.off])
}

// empty takes the dimensions and the word EMPTY, if they follow.
func (p *textParser) empty() bool {
	for {
		before := p.off
		switch p.word() {
		case "Z", "M", "ZM":
		case "EMPTY":
			return true
		default:
			p.off = before
			return false
		}
	}
}

func (p *textParser) head(kind uint32) {
	p.dst = binary.LittleEndian.AppendUint32(append(p.dst, 1), kind)
}

func (p *textParser) geometry(depth int) error {
	word := p.word()
	word = strings.TrimSuffix(strings.TrimSuffix(word, "M"), "Z") // "POINTZ"
	for kind := uint32(point); kind <= collection; kind++ {
		if word == wktNames[kind] {
			return p.body(kind, depth)
		}
	}
	return fault.New(fault.Unsupported, "geometry", int64(p.off), "type %q", word)
}

func (p *textParser) body(kind uint32, depth int) error {
	p.head(kind)
	if kind == point {
		return p.point()
	}
	if depth > maxDepth {
		return fault.New(fault.Limit, "geometry", int64(p.off), "collections %d deep", depth)
	}
	switch kind {
	case lineString:
		return p.list(p.position)
	case polygon:
		return p.list(func() error { return p.list(p.position) })
	case multiPoint:
		return p.list(func() error {
			p.head(point)
			if p.off < len(p.s) && p.peek() == '(' || p.peekEmpty() {
				return p.point()
			}
			return p.position()
		})
	case collection:
		return p.list(func() error { return p.geometry(depth + 1) })
	}
	return p.list(func() error { return p.body(kind-3, depth+1) }) // of lines or polygons
}

func (p *textParser) peek() byte {
	p.blanks()
	if p.off == len(p.s) {
		return 0
	}
	return p.s[p.off]
}

func (p *textParser) peekEmpty() bool {
	before := p.off
	empty := p.word() == "EMPTY"
	p.off = before
	return empty
}

// list takes items between parentheses, and puts their number in front of them.
func (p *textParser) list(item func() error) error {
	pos := len(p.dst)
	p.dst = append(p.dst, 0, 0, 0, 0)
	if p.empty() {
		return nil
	}
	if !p.next('(') {
		return p.corrupt("no parenthesis")
	}
	for n := uint32(1); ; n++ {
		if err := item(); err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(p.dst[pos:], n)
		if p.next(')') {
			return nil
		}
		if !p.next(',') {
			return p.corrupt("neither a comma nor the end of a list")
		}
	}
}

func (p *textParser) point() error {
	if p.empty() {
		nan := math.Float64bits(math.NaN())
		p.dst = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(p.dst, nan), nan)
		return nil
	}
	if !p.next('(') {
		return p.corrupt("no parenthesis")
	}
	if err := p.position(); err != nil {
		return err
	}
	if !p.next(')') {
		return p.corrupt("no end of a point")
	}
	return nil
}

// position takes two to four numbers, and appends the first two.
func (p *textParser) position() error {
	n := 0
	for ; n < 4; n++ {
		p.blanks()
		start := p.off
		for p.off < len(p.s) && strings.IndexByte("+-.0123456789eE", p.s[p.off]) >= 0 {
			p.off++
		}
		if p.off == start {
			break
		}
		v, err := strconv.ParseFloat(p.s[start:p.off], 64)
		if err != nil {
			return p.corrupt("a coordinate is not a number")
		}
		if n < 2 {
			p.dst = binary.LittleEndian.AppendUint64(p.dst, math.Float64bits(v))
		}
	}
	if n < 2 {
		return p.corrupt("a position of fewer than two numbers")
	}
	return nil
}
