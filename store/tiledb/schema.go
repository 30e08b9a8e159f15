package tiledb

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// Order is the order of the tiles in a fragment, or of the cells in a tile.
type Order uint8

// Orders. The cells of a sparse array may follow a Hilbert curve, in format 7 and later.
const (
	RowMajor Order = 0
	ColMajor Order = 1
	Hilbert  Order = 4
)

// String returns "row", "col" or "hilbert".
func (o Order) String() string {
	switch o {
	case ColMajor:
		return "col"
	case Hilbert:
		return "hilbert"
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
	// Pipeline has the filters of the coordinates. In a schema from format 5 on, the filters of
	// Schema.Coords count if it has none. Schemas of formats 3 and 4 have none: libtiledb 2 does not filter
	// the coordinates of the fragments that it adds to their arrays.
	Pipeline filter.Pipeline
}

// Attr is one attribute.
type Attr struct {
	Name     string
	Type     Datatype
	Values   uint32 // in each cell, or VarLen
	Pipeline filter.Pipeline
	// Fill is the value of cells that were never written, or nil for the default of the type. Formats 3 to 5 have none.
	Fill []byte
	// Nullable says that cells may have no value, from format 7 on. FillValid says whether cells
	// that were never written have one.
	Nullable  bool
	FillValid bool
	// Enum is the name of the list of values (Array.Enum) that integers of the attribute number, or "".
	Enum string
}

// FillValue returns the value of a cell that was never written. The caller must not change it.
func (a *Attr) FillValue() []byte {
	if a.Fill != nil {
		return a.Fill
	}
	return a.Type.fill()
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

// CellSize returns the bytes of a cell, or of one value if cells have a variable length.
func (a *Attr) CellSize() int {
	if a.Var() {
		return a.Type.Size()
	}
	return int(a.Values) * a.Type.Size()
}

// Schema describes the dimensions, attributes and tiles of an array. It does not change after it was read.
type Schema struct {
	// Format is the format version, or 0 for Version.
	Format          uint32
	Dense           bool
	TileOrder       Order
	CellOrder       Order
	Capacity        uint64 // cells in a tile of a sparse fragment
	Coords, Offsets filter.Pipeline
	DimType         Datatype // the type of every dimension, or of the first one if DimTypes is set
	// DimTypes has the type of each dimension if they differ, or if there are strings among them. A
	// dimension of strings (StringASCII) has coordinates of the first eight bytes of each string.
	DimTypes  []Datatype
	Dims      []Dim
	Attrs     []Attr
	Encrypted bool
	// AllowsDups says that a sparse array may have several cells with the same coordinates. Reads return them all.
	AllowsDups bool
	Validity   filter.Pipeline // of the files that say which cells have values
	Labels     []string        // names of the labels of dimensions, which are not read
	// Current is the part of the domain that is in use, or nil for all of it.
	Current   Box
	enums     map[string]string // file of each list of values, by its name
	content   []byte            // of the file that it was read from
	tileCells int64             // cells in a tile of a dense fragment
}

// Type returns the type of dimension d.
func (s *Schema) Type(d int) Datatype {
	if s.DimTypes != nil {
		return s.DimTypes[d]
	}
	return s.DimType
}

// types returns the type of every dimension.
func (s *Schema) types() []Datatype {
	if s.DimTypes != nil {
		return s.DimTypes
	}
	return slices.Repeat([]Datatype{s.DimType}, len(s.Dims))
}

// hasText reports whether a dimension has strings.
func (s *Schema) hasText() bool { return slices.Contains(s.DimTypes, StringASCII) }

// version returns the format version.
func (s *Schema) version() uint32 {
	if s.Format == 0 {
		return Version
	}
	return s.Format
}

// Area returns the part of every dimension's domain that is in use: all of it, unless the schema has a current domain.
func (s *Schema) Area() Box {
	if s.Current != nil {
		return slices.Clone(s.Current)
	}
	return s.Domain()
}

// Domain returns the domain of every dimension.
func (s *Schema) Domain() Box {
	box := make(Box, len(s.Dims))
	for d := range box {
		box[d] = s.Dims[d].Domain
	}
	return box
}

// area is Area of one dimension.
func (s *Schema) area(d int) Interval {
	if s.Current != nil {
		return s.Current[d]
	}
	return s.Dims[d].Domain
}

// beforeEpoch reports whether a dimension has datetimes before and after 1970.
func (s *Schema) beforeEpoch() bool {
	zero := s.DimType.CoordOf(0)
	return s.DimTypes == nil && s.DimType.kind() == filter.Time && slices.ContainsFunc(s.Dims, func(d Dim) bool {
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
	cursor := &byteCursor{b: b, part: schemaPart, base: fault.NoOffset}
	version := cursor.u32("version")
	format, known := formatOf(version)
	if cursor.bad == nil && !known {
		return nil, errVersion(cursor.part, 0, uint64(version))
	}
	cursor.x = format
	schema := &Schema{Format: version}
	if format.dups {
		schema.AllowsDups = cursor.flag("whether cells may be duplicates")
	}
	start := cursor.off
	kind := cursor.u8("array type")
	tile, cell := cursor.u8("tile order"), cursor.u8("cell order")
	if kind > 1 {
		cursor.fail(start, "array type %d", kind)
	}
	hilbert := Order(cell) == Hilbert && format.nullable && kind != 0
	if tile > 1 || cell > 1 && !hilbert {
		cursor.fail(start+1, "tile order %d, cell order %d", tile, cell)
	}
	schema.Dense, schema.TileOrder, schema.CellOrder = kind == 0, Order(tile), Order(cell)
	schema.Capacity = cursor.u64("capacity")
	if schema.Capacity == 0 {
		cursor.fail(start+3, "capacity 0")
	}
	schema.Coords, schema.Offsets = cursor.pipeline("coordinate filters"), cursor.pipeline("offset filters")
	if format.nullable {
		schema.Validity = cursor.pipeline("validity filters")
	}
	schema.readDims(cursor)
	schema.readAttrs(cursor)
	schema.readLater(cursor)
	if err := cursor.end(); err != nil {
		return nil, err
	}
	return schema, schema.measure(maxTile)
}

// pipeline reads a filter pipeline.
func (c *byteCursor) pipeline(what string) filter.Pipeline {
	if c.bad != nil {
		return filter.Pipeline{}
	}
	pipeline, length, err := filter.ParseVersion(c.b[c.off:], c.x.version, filterElem)
	if err == nil && pipeline.Has(filter.AES256GCM) {
		err = fault.At(fault.Corrupt, "filter pipeline", 0, "a schema must not list the encryption filter")
	}
	if err != nil {
		c.bad = fault.WithPart(err, c.part+" "+what, int64(c.off))
	}
	c.off += length
	return pipeline
}

func (s *Schema) readDims(c *byteCursor) {
	start := c.off
	typ := s.DimType
	if !c.x.dimTypes {
		typ = Datatype(c.u8("dimension type"))
	}
	pos := c.off
	count := c.u32("number of dimensions")
	switch {
	case c.bad != nil:
		return
	case count == 0 || count > MaxDims:
		c.fail(pos, "%d dimensions, 1 to %d expected", count, MaxDims)
	case !c.x.dimTypes:
		s.checkDimType(c, start, typ)
	}
	var types []Datatype
	for range count {
		if c.bad != nil {
			return
		}
		var dim Dim
		dim, typ = s.readDim(c, typ)
		s.Dims, types = append(s.Dims, dim), append(types, typ)
	}
	if c.bad != nil {
		return
	}
	s.DimType = types[0]
	if slices.ContainsFunc(types, func(t Datatype) bool { return t != types[0] || t == StringASCII }) {
		s.DimTypes = types
	}
	if s.Dense && s.DimTypes != nil {
		c.fail(start, "a dense array with dimensions of different types")
	}
}

// checkDimType checks the type of a dimension of fixed length.
func (s *Schema) checkDimType(c *byteCursor, at int, t Datatype) {
	switch {
	case !t.dimension():
		c.fail(at, "dimension type %d", t)
	case s.Dense && t.Real():
		c.fail(at, "a dense array with dimensions of type %v", t)
	}
}

// readDim reads a dimension. t is its type in formats that have one for all.
func (s *Schema) readDim(c *byteCursor, t Datatype) (Dim, Datatype) {
	dim := Dim{Name: c.name("dimension name")}
	if !c.x.dimTypes {
		s.readDomain(c, &dim, t)
		return dim, t
	}
	pos := c.off
	t = Datatype(c.u8("dimension type"))
	values := c.u32("values per coordinate")
	text := t == StringASCII && values == VarLen
	if c.bad == nil && !text {
		s.checkDimType(c, pos, t)
	}
	wrong := text && s.Dense || !text && values != 1
	if c.bad == nil && wrong {
		c.fail(pos+1, "%d values of type %v per coordinate", values, t)
	}
	dim.Pipeline = c.pipeline("filters of dimension " + dim.Name)
	pos = c.off
	size := c.u64("domain size")
	switch {
	case c.bad != nil:
	case text && size == 0:
		dim.Domain = Interval{0, t.largest()}
		if c.u8("null tile extent") != 1 {
			c.fail(pos, "a dimension of strings with tile extents")
		}
	case text || size != uint64(2*t.Size()):
		c.fail(pos, "a domain of %d bytes for dimension %q of type %v", size, dim.Name, t)
	default:
		s.readDomain(c, &dim, t)
	}
	return dim, t
}

// readDomain reads the domain and the tile extent of a dimension.
func (s *Schema) readDomain(c *byteCursor, d *Dim, t Datatype) {
	box := c.box([]Datatype{t}, "domain")
	start := c.off
	null := c.u8("null tile extent")
	if null > 1 || null == 1 && s.Dense {
		c.fail(start, "null tile extent %d", null)
	}
	if c.bad != nil {
		return
	}
	d.Domain = box[0]
	if null == 1 {
		return
	}
	data := c.take(uint64(t.Size()), "tile extent")
	if data == nil {
		return
	}
	lo, hi := d.Domain.Lo, d.Domain.Hi
	if t.Real() {
		extent := t.Coord(data).float()
		if !(extent > 0) || extent > hi.float()-lo.float()+1 {
			c.fail(start+1, "tile extent %v of dimension %q", extent, d.Name)
		}
		d.Extent = math.Float64bits(extent)
		return
	}
	coord := t.Coord(data)
	zero := t.CoordOf(0)
	if coord <= zero || uint64(coord-zero)-1 > uint64(hi-lo) {
		c.fail(start+1, "tile extent %s of dimension %q does not fit its domain [%s, %s]",
			t.FormatCoord(coord), d.Name, t.FormatCoord(lo), t.FormatCoord(hi))
		return
	}
	d.Extent = uint64(coord - zero)
	// The last tile may reach past the domain. It must not reach past the type, because the
	// coordinates of its cells would overflow; TileDB refuses such a domain too.
	if rest := uint64(hi-lo) % d.Extent; s.Dense && d.Extent-1-rest > uint64(t.largest()-hi) {
		c.fail(start+1, "the last tile along dimension %q passes the largest %v", d.Name, t)
	}
}

func (s *Schema) readAttrs(c *byteCursor) {
	start := c.off
	count := c.u32("number of attributes")
	if c.bad == nil && (count == 0 || count > maxAttrs) {
		c.fail(start, "%d attributes, 1 to %d expected", count, maxAttrs)
	}
	seen := map[string]bool{}
	if !c.x.dimTypes {
		seen[coordsName] = true
	}
	for range count {
		if c.bad != nil {
			return
		}
		start := c.off
		attr := Attr{Name: c.name("attribute name")}
		typ := c.off
		attr.Type, attr.Values = Datatype(c.u8("attribute type")), c.u32("values per cell")
		switch {
		case c.bad != nil:
			return
		case !c.x.dimTypes && (attr.Name == "" || strings.ContainsAny(attr.Name, "/\x00")):
			c.fail(start, "attribute name %q is not a file name", attr.Name)
		case seen[attr.Name]:
			c.fail(start, "two attributes are called %q", attr.Name)
		case !attr.Type.Valid() || attr.Type >= numOfFormat3 && !c.x.dimTypes:
			c.fail(typ, "datatype %d of attribute %q", attr.Type, attr.Name)
		case attr.Values == 0 || attr.Type == Any && !attr.Var():
			c.fail(typ+1, "%d values of type %v per cell of attribute %q", attr.Values, attr.Type, attr.Name)
		}
		seen[attr.Name] = true
		attr.Pipeline = c.pipeline("filters of attribute " + attr.Name)
		attr.readLater(c)
		s.Attrs = append(s.Attrs, attr)
	}
}

// measure computes the cells of a dense tile and checks that no tile exceeds the limit.
func (s *Schema) measure(maxTile int64) error {
	tooBig := func(what string) error {
		return fault.New(fault.Limit, schemaPart, "a tile of %s is over %d bytes", what, maxTile)
	}
	s.tileCells = 1
	if s.Dense {
		for i := range s.Dims {
			extent := s.Dims[i].Extent
			if extent > uint64(maxTile) || s.tileCells > maxTile/int64(extent) {
				return tooBig("the array")
			}
			s.tileCells *= int64(extent)
		}
	}
	for i := range s.Attrs {
		attr := &s.Attrs[i]
		size := uint64(attr.Type.Size())
		if !attr.Var() {
			size *= uint64(attr.Values)
		} else {
			size = 8 // bytes of an offset
		}
		if size > uint64(maxTile) || uint64(s.tileCells) > uint64(maxTile)/size {
			return tooBig("attribute " + attr.Name)
		}
	}
	return nil
}

// ParseBox parses "lo..hi,lo..hi", one interval for each dimension, both ends included. A syntax
// error has no kind; a box that is not inside the domain is fault.NotFound.
func (s *Schema) ParseBox(text string) (Box, error) {
	parts := strings.Split(text, ",")
	if len(parts) != len(s.Dims) {
		return nil, fault.New(fault.NotFound, "sub-array", "%d intervals for %d dimensions", len(parts), len(s.Dims))
	}
	box := make(Box, len(parts))
	for d, p := range parts {
		lo, hi, ok := strings.Cut(p, "..")
		if !ok {
			return nil, fmt.Errorf("sub-array: %q: an interval is written lo..hi", p)
		}
		var err error
		if box[d].Lo, err = s.Type(d).ParseCoord(strings.TrimSpace(lo)); err == nil {
			box[d].Hi, err = s.Type(d).ParseCoord(strings.TrimSpace(hi))
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
		return fault.New(fault.NotFound, "sub-array", "%d intervals for %d dimensions", len(b), len(s.Dims))
	}
	for d, interval := range b {
		dom := s.Dims[d].Domain
		if interval.Lo > interval.Hi || !dom.covers(interval) {
			format := s.Type(d).FormatCoord
			return fault.New(fault.NotFound, "sub-array", "[%s, %s] is not inside dimension %q, [%s, %s]",
				format(interval.Lo), format(interval.Hi), s.Dims[d].Name, format(dom.Lo), format(dom.Hi))
		}
	}
	return nil
}
