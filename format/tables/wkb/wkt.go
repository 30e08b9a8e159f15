package wkb

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/chaski-eo/chaski/fault"
)

var wktNames = [...]string{point: "POINT", lineString: "LINESTRING", polygon: "POLYGON", multiPoint: "MULTIPOINT",
	multiLineString: "MULTILINESTRING", multiPolygon: "MULTIPOLYGON", collection: "GEOMETRYCOLLECTION"}

// AppendText appends the well-known binary of a geometry in well-known text ("POINT (-6 40)"): the seven simple feature
// types, x and y of each position. It ignores EWKT's SRID.
func AppendText(dst []byte, text string) ([]byte, error) {
	parser := textParser{s: text, dst: dst}
	if strings.HasPrefix(strings.ToUpper(text), "SRID=") {
		parser.off = strings.IndexByte(text, ';') + 1
	}
	parser.geometry(0)
	if parser.peek(); parser.off != len(parser.s) {
		parser.fail(fault.Corrupt, "text follows the geometry")
	}
	if parser.err != nil {
		return dst, parser.err
	}
	return parser.dst, nil
}

// textParser parses well-known text and appends well-known binary. After the first error it stands at the end of the
// text, where nothing follows.
type textParser struct {
	s   string
	off int
	dst []byte
	err error
}

func (p *textParser) fail(kind fault.Kind, format string, args ...any) {
	if p.err == nil {
		p.err = fault.At(kind, "geometry", int64(p.off), format, args...)
	}
	p.off = len(p.s)
}

// peek returns the next character after blanks, 0 at the end.
func (p *textParser) peek() byte {
	for p.off < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.off]) >= 0 {
		p.off++
	}
	if p.off == len(p.s) {
		return 0
	}
	return p.s[p.off]
}

// next takes the character c if it is the next one.
func (p *textParser) next(c byte) bool {
	found := p.peek() == c
	if found {
		p.off++
	}
	return found
}

// expect takes the character c, which what names.
func (p *textParser) expect(c byte, what string) {
	if !p.next(c) {
		p.fail(fault.Corrupt, "no %s", what)
	}
}

// word takes the letters that follow, in upper case.
func (p *textParser) word() string {
	p.peek()
	start := p.off
	for p.off < len(p.s) && unicode.IsLetter(rune(p.s[p.off])) {
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

func (p *textParser) geometry(depth int) {
	word := p.word()
	word = strings.TrimSuffix(strings.TrimSuffix(word, "M"), "Z") // "POINTZ"
	if kind := slices.Index(wktNames[:], word); kind >= point {
		p.body(uint32(kind), depth)
		return
	}
	p.fail(fault.Unsupported, "type %q", word)
}

func (p *textParser) body(kind uint32, depth int) {
	p.head(kind)
	if kind > polygon && depth == maxDepth {
		p.fail(fault.Limit, "collections %d deep", depth)
	}
	switch kind {
	case point:
		p.point()
	case lineString:
		p.list(p.position)
	case polygon:
		p.list(func() { p.list(p.position) })
	case multiPoint:
		p.list(func() {
			p.head(point)
			if strings.IndexByte("(eE", p.peek()) >= 0 { // EMPTY
				p.point()
			} else {
				p.position()
			}
		})
	case collection:
		p.list(func() { p.geometry(depth + 1) })
	default: // of lines or polygons
		p.list(func() { p.body(kind-3, depth) })
	}
}

// list takes items between parentheses, and puts their number in front of them.
func (p *textParser) list(item func()) {
	pos := len(p.dst)
	p.dst = append(p.dst, 0, 0, 0, 0)
	if p.empty() {
		return
	}
	p.expect('(', "parenthesis")
	item()
	items := uint32(1)
	for ; p.next(','); items++ {
		item()
	}
	p.expect(')', "comma and no end of a list")
	binary.LittleEndian.PutUint32(p.dst[pos:], items)
}

func (p *textParser) point() {
	if p.empty() {
		nan := math.Float64bits(math.NaN())
		p.dst = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(p.dst, nan), nan)
		return
	}
	p.expect('(', "parenthesis")
	p.position()
	p.expect(')', "end of a point")
}

// position takes two to four numbers, and appends the first two.
func (p *textParser) position() {
	numbers := 0
	for ; numbers < 4; numbers++ {
		p.peek()
		start := p.off
		for p.off < len(p.s) && strings.IndexByte("+-.0123456789eE", p.s[p.off]) >= 0 {
			p.off++
		}
		if p.off == start {
			break
		}
		number, err := strconv.ParseFloat(p.s[start:p.off], 64)
		if err != nil {
			p.fail(fault.Corrupt, "a coordinate is not a number")
			return
		}
		if numbers < 2 {
			p.dst = binary.LittleEndian.AppendUint64(p.dst, math.Float64bits(number))
		}
	}
	if numbers < 2 {
		p.fail(fault.Corrupt, "a position of fewer than two numbers")
	}
}
