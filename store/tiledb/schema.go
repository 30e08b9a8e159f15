package tiledb

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// Order is the order of the tiles in a fragment, or of the cells in a tile.
type Order uint8

// Orders.
const (
	RowMajor Order = 0
	ColMajor Order = 1
)

// String returns "row" or "col".
func (o Order) String() string {
	if o == ColMajor {
		return "col"
	}
	return "row"
}

// MarshalText writes the name (JSON).
func (o Order) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// VarLen as the number of values in a cell means that cells have any number of them.
const VarLen = math.MaxUint32

// Limits of a schema. They keep arithmetic from overflowing, and a small file from claiming much
// memory. Real arrays are far below them.
const (
	MaxDims  = 64
	maxAttrs = 1 << 16
	maxName  = 4096
)

// Dim is one dimension.
type Dim struct {
	Name   string
	Domain Interval
	// Extent is the side of a tile: a number of coordinates for integer types, the bits of a
	// float64 for others. It is 0 if a sparse array has no tile extents.
	Extent uint64
}

// Attr is one attribute.
type Attr struct {
	Name     string
	Type     Datatype
	Values   uint32 // in each cell, or VarLen
	Pipeline filter.Pipeline
}

// Var reports whether cells have a variable number of values.
func (a *Attr) Var() bool { return a.Values == VarLen }

// Cells describes the number of values in a cell.
func (a *Attr) Cells() string {
	if a.Var() {
		return "any number of values"
	}
	return fmt.Sprintf("%d values", a.Values)
}

// CellSize returns the bytes of a cell, or those of one value if cells have a variable length.
func (a *Attr) CellSize() int {
	if a.Var() {
		return a.Type.Size()
	}
	return int(a.Values) * a.Type.Size()
}

// Schema describes the dimensions, attributes and tiles of an array. It does not change after it
// was read.
type Schema struct {
	Dense           bool
	TileOrder       Order
	CellOrder       Order
	Capacity        uint64 // cells in a tile of a sparse fragment
	Coords, Offsets filter.Pipeline
	DimType         Datatype // the type of every dimension
	Dims            []Dim
	Attrs           []Attr
	Encrypted       bool
	tileCells       int64 // cells in a tile of a dense fragment
}

// Domain returns the domain of every dimension.
func (s *Schema) Domain() Box {
	b := make(Box, len(s.Dims))
	for d := range b {
		b[d] = s.Dims[d].Domain
	}
	return b
}

// beforeEpoch reports whether a dimension has datetimes before and after 1970.
func (s *Schema) beforeEpoch() bool {
	zero := s.DimType.CoordOf(0)
	return s.DimType.kind() == filter.Time && slices.ContainsFunc(s.Dims, func(d Dim) bool {
		return d.Domain.Lo < zero && d.Domain.Hi >= zero
	})
}

// Attr returns the index of an attribute, or -1.
func (s *Schema) Attr(name string) int {
	for i := range s.Attrs {
		if s.Attrs[i].Name == name {
			return i
		}
	}
	return -1
}

const schemaPart = "array schema"

// parseSchema parses the decoded content of a schema file.
func parseSchema(b []byte, maxTile int64) (*Schema, error) {
	c := &cursor{b: b, part: schemaPart, base: fault.NoOffset}
	if v := c.u32("version"); c.bad == nil && v != Version {
		return nil, c.fault(fault.Unsupported, 0, "format version %d", v)
	}
	s := &Schema{}
	kind := c.u8("array type")
	tile, cell := c.u8("tile order"), c.u8("cell order")
	if kind > 1 {
		c.fail(4, "array type %d", kind)
	}
	if tile > 1 || cell > 1 {
		c.fail(5, "tile order %d, cell order %d", tile, cell)
	}
	s.Dense, s.TileOrder, s.CellOrder = kind == 0, Order(tile), Order(cell)
	s.Capacity = c.u64("capacity")
	if s.Capacity == 0 {
		c.fail(7, "capacity 0")
	}
	s.Coords, s.Offsets = c.pipeline("coordinate filters"), c.pipeline("offset filters")
	s.readDims(c)
	s.readAttrs(c)
	if err := c.end(); err != nil {
		return nil, err
	}
	return s, s.measure(maxTile)
}

// pipeline reads a filter pipeline.
func (c *cursor) pipeline(what string) filter.Pipeline {
	if c.bad != nil {
		return filter.Pipeline{}
	}
	p, n, err := filter.Parse(c.b[c.off:])
	if err == nil && p.Has(filter.AES256GCM) {
		err = fault.New(fault.Corrupt, "filter pipeline", 0, "a schema must not list the encryption filter")
	}
	if err != nil {
		c.bad = fault.WithPart(err, c.part+" "+what, int64(c.off))
	}
	c.off += n
	return p
}

// name reads a string that is preceded by its length.
func (c *cursor) name(what string) string {
	from := c.off
	n := c.u32(what + " length")
	if n > maxName {
		c.fail(from, "%s of %d bytes", what, n)
	}
	s := string(c.take(uint64(n), what))
	if !utf8.ValidString(s) {
		c.fail(from, "%s is not UTF-8", what)
	}
	return s
}

func (s *Schema) readDims(c *cursor) {
	from := c.off
	s.DimType = Datatype(c.u8("dimension type"))
	n := c.u32("number of dimensions")
	switch {
	case c.bad != nil:
		return
	case !s.DimType.dimension():
		c.fail(from, "dimension type %d", s.DimType)
	case s.Dense && s.DimType.real():
		c.fail(from, "a dense array with dimensions of type %v", s.DimType)
	case n == 0 || n > MaxDims:
		c.fail(from+1, "%d dimensions, 1 to %d expected", n, MaxDims)
	}
	for range n {
		if c.bad != nil {
			return
		}
		s.Dims = append(s.Dims, s.readDim(c))
	}
}

func (s *Schema) readDim(c *cursor) Dim {
	d := Dim{Name: c.name("dimension name")}
	box := c.box(s.DimType, 1, "domain")
	from := c.off
	null := c.u8("null tile extent")
	if null > 1 || null == 1 && s.Dense {
		c.fail(from, "null tile extent %d", null)
	}
	if c.bad != nil {
		return d
	}
	d.Domain = box[0]
	if null == 1 {
		return d
	}
	b := c.take(uint64(s.DimType.Size()), "tile extent")
	if b == nil {
		return d
	}
	lo, hi := d.Domain.Lo, d.Domain.Hi
	if s.DimType.real() {
		e := s.DimType.load(b).float()
		if !(e > 0) || e > hi.float()-lo.float()+1 {
			c.fail(from+1, "tile extent %v of dimension %q", e, d.Name)
		}
		d.Extent = math.Float64bits(e)
		return d
	}
	e := s.DimType.load(b)
	zero := s.DimType.CoordOf(0)
	if e <= zero || uint64(e-zero)-1 > uint64(hi-lo) {
		c.fail(from+1, "tile extent %s of dimension %q does not fit its domain [%s, %s]",
			s.DimType.FormatCoord(e), d.Name,
			s.DimType.FormatCoord(lo), s.DimType.FormatCoord(hi))
		return d
	}
	d.Extent = uint64(e - zero)
	// The last tile may reach past the domain. It must not reach past the type, because the
	// coordinates of its cells would overflow; TileDB refuses such a domain too.
	if over := uint64(hi-lo) % d.Extent; s.Dense && d.Extent-1-over > uint64(s.DimType.largest()-hi) {
		c.fail(from+1, "the last tile along dimension %q passes the largest %v", d.Name, s.DimType)
	}
	return d
}

func (s *Schema) readAttrs(c *cursor) {
	from := c.off
	n := c.u32("number of attributes")
	if c.bad == nil && (n == 0 || n > maxAttrs) {
		c.fail(from, "%d attributes, 1 to %d expected", n, maxAttrs)
	}
	seen := map[string]bool{coordsName: true}
	for range n {
		if c.bad != nil {
			return
		}
		from := c.off
		a := Attr{Name: c.name("attribute name")}
		typ := c.off
		a.Type, a.Values = Datatype(c.u8("attribute type")), c.u32("values per cell")
		switch {
		case c.bad != nil:
			return
		case a.Name == "" || strings.ContainsAny(a.Name, "/\x00"):
			c.fail(from, "attribute name %q is not a file name", a.Name)
		case seen[a.Name]:
			c.fail(from, "two attributes are called %q", a.Name)
		case !a.Type.Valid():
			c.fail(typ, "datatype %d of attribute %q", a.Type, a.Name)
		case a.Values == 0 || a.Type == Any && !a.Var():
			c.fail(typ+1, "%d values of type %v per cell of attribute %q", a.Values, a.Type, a.Name)
		}
		seen[a.Name] = true
		a.Pipeline = c.pipeline("filters of attribute " + a.Name)
		s.Attrs = append(s.Attrs, a)
	}
}

// measure computes the cells of a dense tile and checks that no tile exceeds the limit.
func (s *Schema) measure(maxTile int64) error {
	tooBig := func(what string) error {
		return fault.New(fault.Limit, schemaPart, fault.NoOffset, "a tile of %s is over %d bytes", what, maxTile)
	}
	s.tileCells = 1
	if s.Dense {
		for i := range s.Dims {
			e := s.Dims[i].Extent
			if e > uint64(maxTile) || s.tileCells > maxTile/int64(e) {
				return tooBig("the array")
			}
			s.tileCells *= int64(e)
		}
	}
	for i := range s.Attrs {
		a := &s.Attrs[i]
		size := uint64(a.Type.Size())
		if !a.Var() {
			size *= uint64(a.Values)
		} else {
			size = 8 // bytes of an offset
		}
		if size > uint64(maxTile) || uint64(s.tileCells) > uint64(maxTile)/size {
			return tooBig("attribute " + a.Name)
		}
	}
	return nil
}

// ParseBox parses "lo..hi,lo..hi", one interval for each dimension, both ends included. A syntax
// error has no kind; a box that is not inside the domain is fault.NotFound.
func (s *Schema) ParseBox(text string) (Box, error) {
	parts := strings.Split(text, ",")
	if len(parts) != len(s.Dims) {
		return nil, fault.New(fault.NotFound, "sub-array", fault.NoOffset, "%d intervals for %d dimensions",
			len(parts), len(s.Dims))
	}
	box := make(Box, len(parts))
	for d, p := range parts {
		lo, hi, ok := strings.Cut(p, "..")
		if !ok {
			return nil, fmt.Errorf("sub-array: %q: an interval is written lo..hi", p)
		}
		var err error
		if box[d].Lo, err = s.DimType.ParseCoord(strings.TrimSpace(lo)); err == nil {
			box[d].Hi, err = s.DimType.ParseCoord(strings.TrimSpace(hi))
		}
		if err != nil {
			return nil, fmt.Errorf("sub-array: %w", err)
		}
	}
	return box, s.check(box)
}

// check returns an error if a box is not inside the domain.
func (s *Schema) check(b Box) error {
	if len(b) != len(s.Dims) {
		return fault.New(fault.NotFound, "sub-array", fault.NoOffset, "%d intervals for %d dimensions",
			len(b), len(s.Dims))
	}
	for d, i := range b {
		dom := s.Dims[d].Domain
		if i.Lo > i.Hi || !dom.covers(i) {
			f := s.DimType.FormatCoord
			return fault.New(fault.NotFound, "sub-array", fault.NoOffset,
				"[%s, %s] is not inside dimension %q, [%s, %s]",
				f(i.Lo), f(i.Hi), s.Dims[d].Name, f(dom.Lo), f(dom.Hi))
		}
	}
	return nil
}

// tile returns the index of the space tile of a coordinate along the dimension, or 0 if the
// dimension has no tiles.
func (d *Dim) tile(t Datatype, c Coord) uint64 {
	switch {
	case d.Extent == 0:
		return 0
	case t.real():
		return uint64((c.float() - d.Domain.Lo.float()) / math.Float64frombits(d.Extent))
	}
	return uint64(c-d.Domain.Lo) / d.Extent
}
