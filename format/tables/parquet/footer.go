// Package parquet reads Parquet files: flat columns one page at a time and at random, nested ones a
// column chunk at a time, with their levels.
//
// It follows the Apache Parquet format 2.12 (parquet.thrift, Encodings.md, Compression.md): data pages of version 1 and
// 2; encodings PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY, RLE (booleans), DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY,
// DELTA_BYTE_ARRAY and BYTE_STREAM_SPLIT; codecs uncompressed, snappy, gzip, zstd, LZ4_RAW and brotli; offset indexes,
// column indexes, statistics. INT96 is read as a timestamp, as all its writers use it. It does not read encrypted
// files, columns in other files, the old LZ4 codec, or BIT_PACKED levels.
//
// Files are not trusted. No count of a file sizes an allocation before it is checked against the bytes of the file or
// one of the limits below; nesting is bounded; everything runs on the caller's goroutine. A Thrift library allocates
// lists by the counts in the file, so this package has a Thrift reader of its own.
package parquet

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Limits of the values in a footer.
const (
	maxFooter = 64 << 20 // bytes
	maxChunks = 1 << 20  // column chunks, all row groups together
	maxPage   = 64 << 20 // bytes, decompressed
	// Pages of images are larger: writers count rows, and 1,024 rows of 256 KiB are 256 MiB. They may have up to this
	// many bytes, and four times those that are stored, so a small file never takes much memory.
	maxStoredPage = 512 << 20
	maxExpansion  = 4
	maxPageValues = 4 << 20
	maxPageHeader = 1 << 20
	maxKeyValue   = 1 << 20 // bytes of key-value metadata that are kept
)

// MaxColumns bounds the columns of a table of any format. Tables of statistics have some thousands; a header of 16 MiB
// could name millions.
const MaxColumns = 1 << 14

// Physical is a column's storage type. The values are Parquet's.
type Physical int32

// Storage types.
const (
	Boolean Physical = iota
	Int32
	Int64
	Int96
	Float
	Double
	ByteArray
	FixedLenByteArray
	numPhysical
)

// Column is one leaf of the schema.
type Column struct {
	Name string // path in the schema, joined by dots, without the inner groups of lists and maps
	Type Physical
	Note Note
	// Nested reads repeated columns (lists, maps), ReadFew lists.
	Repeated bool

	width    int // of FixedLenByteArray
	defLevel int // definition level of a value that is not null
	repLevel int // repetition level of its innermost list
	elemDef  int // definition level of an element of that list, null or not
	listDef  int // the same of the outermost list
}

// NoteKind is what a column or group is annotated as.
type NoteKind uint8

// Kinds of annotations.
const (
	NoNote    NoteKind = iota
	Integer            // Bits, Unsigned
	String             // or ENUM
	JSON               // of strings
	Half               // FLOAT16
	Date               // days since 1970-01-01
	Time               // Unit
	Timestamp          // Unit, UTC
	Decimal            // Scale, Precision
	Null               // no value at all
	List               // of a group
	Map                // of a group
	UUID
	Unknown // a type that is opaque here: INTERVAL, BSON, GEOMETRY, …
)

// Note is an annotation. Scale and Precision are not checked.
type Note struct {
	Kind             NoteKind
	Bits             uint8
	Unsigned         bool
	Unit             uint8 // 3, 6 or 9: thousandths, millionths, billionths of a second
	UTC              bool  // in UTC; otherwise the local time of an unknown place
	Scale, Precision int32
}

// Text reports whether byte arrays are strings.
func (n Note) Text() bool { return n.Kind == String || n.Kind == JSON }

// Opaque reports whether values are neither numbers nor strings.
func (n Note) Opaque() bool { return n.Kind == Decimal || n.Kind == UUID || n.Kind == Unknown }

// Field is a node of the schema.
type Field struct {
	Name string
	// Leaf is the number in Columns, or -1 of a group.
	Leaf     int
	Note     Note
	Children []Field
	// Optional and Repeated are the node's own repetition; Def and Rep are the levels of it being there.
	Optional, Repeated bool
	Def, Rep           int

	// Wraps is true of the repeated node of a list whose only child is the element. The exceptions are the
	// backward-compatibility rules of LogicalTypes.md, "Nested Types".
	Wraps bool

	elemDef, listDef int // Def of the innermost and of the outermost node that is repeated
}

// File is an open Parquet file. It is safe for concurrent use.
type File struct {
	// Rows is the number of rows, the sum over the row groups.
	Rows int64
	// Columns are the leaves of the schema, in its order.
	Columns []Column
	// Fields is the schema as a tree: the columns of the table.
	Fields []Field
	// Meta is the key-value metadata, without large values.
	Meta map[string]string
	// Creator says what wrote the file.
	Creator string
	// Groups are the row groups.
	Groups []Group

	r      source.Reader
	footer []byte // kept with its offset, because statistics are parsed on demand only
	base   int64
}

// Group is one row group.
type Group struct {
	First, Rows int64
	chunks      []columnChunk
}

type columnChunk struct {
	codec            int32
	start, end       int64 // byte range of the pages
	indexOff         int64 // offset index, or 0
	indexLen         int32
	dictOff, dataOff int64
	boundsOff        int64 // column index, or 0
	boundsLen        int32
	stats            int32 // where the Statistics stand in the footer, or 0
	foreign          bool  // in another file, or encrypted
}

// Open reads the footer and nothing else. It does not close r.
func Open(ctx context.Context, r source.Reader) (*File, error) {
	file := &File{r: r}
	if r.Size() < 12 {
		return nil, fault.At(fault.Corrupt, "footer", 0, "a file of %d bytes is no Parquet file", r.Size())
	}
	var tail [8]byte
	if err := r.ReadAt(ctx, tail[:], r.Size()-8); err != nil {
		return nil, err
	}
	switch string(tail[4:]) {
	case "PAR1":
	case "PARE":
		return nil, fault.At(fault.Unsupported, "footer", r.Size()-4, "the file is encrypted")
	default:
		return nil, fault.At(fault.Corrupt, "footer", r.Size()-4, "not a Parquet file")
	}
	size := int64(binary.LittleEndian.Uint32(tail[:]))
	if size > r.Size()-12 {
		return nil, fault.At(fault.Corrupt, "footer", r.Size()-8, "%d bytes in a file of %d", size, r.Size())
	}
	if size > maxFooter {
		return nil, fault.At(fault.Limit, "footer", r.Size()-8, "%d bytes, at most %d", size, maxFooter)
	}
	start := r.Size() - 8 - size
	data, err := source.Read(ctx, r, start, size)
	if err != nil {
		return nil, err
	}
	file.footer, file.base = data, start
	parser := footerParser{thrift: thrift{b: data, base: start, part: "footer"}, f: file, limit: start,
		budget: 2*r.Size() + slack}
	parser.parse()
	if parser.err != nil {
		return nil, parser.err
	}
	return file, nil
}

// Cost returns about how many bytes of memory the file holds: its footer, as it was read and parsed.
func (f *File) Cost() int {
	cost := len(f.footer) + len(f.Creator) + columnCost*len(f.Columns)
	for i := range f.Groups {
		cost += groupCost + chunkCost*len(f.Groups[i].chunks)
	}
	for k, v := range f.Meta {
		cost += len(k) + len(v)
	}
	return cost
}

// Group returns the row group that holds a row, and the number of the row in it.
func (f *File) Group(row int64) (group int, in int64) {
	group = sort.Search(len(f.Groups), func(i int) bool { return f.Groups[i].First > row }) - 1
	return group, row - f.Groups[group].First
}

// Column returns the number of the column with a name, or -1.
func (f *File) Column(name string) int {
	for i := range f.Columns {
		if f.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

type footerParser struct {
	thrift
	f         *File
	limit     int64 // column chunks end before this offset
	rows      int64
	metaBytes int // bytes of Meta
	count     int // column chunks
	// outlines is what the type of the element being read says of geometries, nil for other types, and geo what the
	// types of all columns say.
	outlines *geometryType
	geo      []geometryType
	// budget is how many bytes the parsed footer may still take. A few bytes of a footer (an unnamed element, an empty
	// chunk) may take many in memory.
	budget int64
}

// slack is how many bytes a parsed footer may always take beside twice the size of the file.
const slack = 1 << 20

// Bytes of memory, rounded up.
const (
	// Bytes that parsed parts take in memory, rounded up.
	columnCost = 400 // schemaElem, Column and Field
	groupCost  = 48
	chunkCost  = 96
)

// spend takes n parts of a size from the budget.
func (p *footerParser) spend(n, size int) bool {
	if p.budget -= int64(n) * int64(size); p.budget < 0 {
		p.fail(fault.Limit, "it describes more columns and row groups than its file can hold")
	}
	return p.err == nil
}

func (p *footerParser) parse() {
	var elems []schemaElem
	rowGroups := -1
	p.structure(func(id int, typ byte) {
		switch {
		case id == 2 && typ == tList:
			if n := p.peekList(); elems == nil && p.spend(n, columnCost) {
				elems = make([]schemaElem, 0, n)
			}
			p.list(tStruct, func() { elems = append(elems, p.element(len(elems))) })
		case id == 3 && typ == tI64:
			p.rows = p.i64()
		case id == 4 && typ == tList:
			// The row groups are read after the schema, because that may follow and says how many columns they need.
			rowGroups = p.at
			p.skip(typ)
		case id == 5 && typ == tList:
			p.list(tStruct, p.keyValue)
		case id == 6 && typ == tBinary:
			p.f.Creator = string(p.binary())
		case id == 8:
			p.fail(fault.Unsupported, "the file is encrypted")
		default:
			p.skip(typ)
		}
	})
	p.columns(elems)
	if p.err != nil {
		return
	}
	p.describe()
	if rowGroups >= 0 {
		p.at = rowGroups
		if n := p.peekList(); p.spend(n, groupCost) {
			p.f.Groups = make([]Group, 0, n)
		}
		p.list(tStruct, p.rowGroup)
	}
	if p.err == nil && p.f.Rows != p.rows {
		p.fail(fault.Corrupt, "%d rows, but the row groups have %d", p.rows, p.f.Rows)
	}
}

type schemaElem struct {
	name       string
	typ        int32 // -1: a group
	width      int32
	repetition int32
	children   int32
	note       Note
}

func (p *footerParser) element(n int) schemaElem {
	elem := schemaElem{typ: -1}
	p.outlines = nil
	var name []byte
	p.fields(&elem.typ, &elem.width, &elem.repetition, &name, &elem.children, func(typ byte) {
		if !p.want(typ, tI32) {
			return
		}
		if note := convertedType(p.i32()); elem.note.Kind == NoNote {
			note.Scale, note.Precision = elem.note.Scale, elem.note.Precision
			elem.note = note
		}
	}, &elem.note.Scale, &elem.note.Precision, nil, func(typ byte) {
		if !p.want(typ, tStruct) {
			return
		}
		if note := p.logicalType(); note.Kind != NoNote {
			elem.note = note
		}
	})
	if elem.typ < -1 || elem.typ >= int32(numPhysical) {
		p.fail(fault.Corrupt, "column of type %d", elem.typ)
	}
	if elem.name = string(name); name == nil {
		p.fail(fault.Corrupt, "a schema element has no name")
	}
	if p.outlines != nil {
		p.outlines.column = elem.name
		p.geo = append(p.geo, *p.outlines)
	}
	if n > MaxColumns {
		p.fail(fault.Limit, "more than %d columns", MaxColumns)
	}
	return elem
}

// convertedType maps the older annotation.
func convertedType(t int32) Note {
	switch t {
	case 0, 4: // UTF8, ENUM
		return Note{Kind: String}
	case 19:
		return Note{Kind: JSON}
	case 1, 2: // MAP, MAP_KEY_VALUE
		return Note{Kind: Map}
	case 3:
		return Note{Kind: List}
	case 5:
		return Note{Kind: Decimal}
	case 20, 21: // BSON, INTERVAL
		return Note{Kind: Unknown}
	case 6:
		return Note{Kind: Date}
	case 7, 8: // TIME_MILLIS, TIME_MICROS
		return Note{Kind: Time, Unit: uint8(3 * (t - 6)), UTC: true}
	case 9, 10: // TIMESTAMP_MILLIS, TIMESTAMP_MICROS
		return Note{Kind: Timestamp, Unit: uint8(3 * (t - 8)), UTC: true}
	case 11, 12, 13, 14: // UINT_8 … UINT_64
		return Note{Kind: Integer, Bits: 8 << (t - 11), Unsigned: true}
	case 15, 16, 17, 18: // INT_8 … INT_64
		return Note{Kind: Integer, Bits: 8 << (t - 15)}
	}
	return Note{}
}

// logicalKinds are the members of the union LogicalType, by their numbers: 4 is ENUM, 13 BSON, 16 VARIANT, 17 GEOMETRY
// and 18 GEOGRAPHY.
var logicalKinds = map[int]NoteKind{1: String, 2: Map, 3: List, 4: String, 5: Decimal, 6: Date, 7: Time, 8: Timestamp,
	10: Integer, 11: Null, 12: JSON, 13: Unknown, 14: UUID, 15: Half, 16: Unknown, 17: Unknown, 18: Unknown}

// logicalType reads the union LogicalType.
func (p *footerParser) logicalType() (note Note) {
	p.structure(func(id int, typ byte) {
		note.Kind = logicalKinds[id]
		switch {
		case note.Kind == Decimal:
			if p.want(typ, tStruct) {
				p.fields(&note.Scale, &note.Precision)
			}
		case note.Kind == Time || note.Kind == Timestamp:
			p.timeType(typ, &note)
		case note.Kind == Integer:
			signed := true
			if p.want(typ, tStruct) {
				p.fields(&note.Bits, &signed)
			}
			note.Unsigned = !signed
		case id == 17 || id == 18:
			p.outlines = p.outlineType(typ, id == 18)
		default:
			p.skip(typ)
		}
	})
	return note
}

// timeType reads TimeType or TimestampType, which have the same fields.
func (p *footerParser) timeType(typ byte, note *Note) {
	if !p.want(typ, tStruct) {
		return
	}
	p.fields(&note.UTC, func(typ byte) {
		if !p.want(typ, tStruct) {
			return
		}
		p.structure(func(id int, typ byte) { // the union TimeUnit: MILLIS, MICROS, NANOS
			note.Unit = uint8(3 * min(max(id, 0), 3))
			p.skip(typ)
		})
	})
}

// columns turns the schema, a list in depth-first order, into its leaves and its tree.
func (p *footerParser) columns(elems []schemaElem) {
	if p.err != nil {
		return
	}
	if len(elems) == 0 {
		p.fail(fault.Corrupt, "no schema")
		return
	}
	rest := elems[1:]
	p.f.Columns = make([]Column, 0, len(rest))
	p.f.Fields = p.tree(&rest, elems[0].children, Field{}, "", 0)
	if p.err == nil && len(rest) > 0 {
		p.fail(fault.Corrupt, "the schema is not a tree")
	}
}

// tree takes the n children of a node off the list.
func (p *footerParser) tree(rest *[]schemaElem, n int32, up Field, path string, depth int) []Field {
	if n < 0 || int(n) > len(*rest) || depth > 64 {
		p.fail(fault.Corrupt, "the schema is not a tree of at most 64 levels")
		return nil
	}
	out := make([]Field, 0, n)
	for range n {
		if len(*rest) == 0 {
			p.fail(fault.Corrupt, "the schema is not a tree")
			return nil
		}
		elem := (*rest)[0]
		*rest = (*rest)[1:]
		field := Field{Name: elem.name, Leaf: -1, Note: elem.note, Optional: elem.repetition == 1,
			Repeated: elem.repetition == 2, Def: up.Def, Rep: up.Rep, elemDef: up.elemDef, listDef: up.listDef}
		if elem.repetition != 0 {
			field.Def++
		}
		if field.Repeated {
			field.Rep++
			field.elemDef, field.listDef = field.Def, cmp.Or(up.listDef, field.Def)
		}
		inner := field.Repeated && n == 1 && (up.Note.Kind == List || up.Note.Kind == Map)
		field.Wraps = inner && up.Note.Kind == List && elem.typ < 0 && elem.children == 1 &&
			field.Name != "array" && field.Name != up.Name+"_tuple"
		name := elem.name
		switch {
		case inner, up.Wraps:
			name = path
		case path != "":
			if name = path + "." + elem.name; !p.spend(1, len(name)) {
				return nil
			}
		}
		if len(name) > 4096 {
			p.fail(fault.Limit, "a column name of over 4096 bytes")
			return nil
		}
		if elem.typ < 0 {
			field.Children = p.tree(rest, elem.children, field, name, depth+1)
		} else {
			field.Leaf = p.leaf(&elem, &field, name)
		}
		if p.err != nil {
			return nil
		}
		out = append(out, field)
	}
	return out
}

func (p *footerParser) leaf(e *schemaElem, f *Field, name string) int {
	column := Column{Name: name, Type: Physical(e.typ), Note: e.note, Repeated: f.Rep > 0,
		width: int(e.width), defLevel: f.Def, repLevel: f.Rep, elemDef: f.elemDef, listDef: f.listDef}
	if column.Type == FixedLenByteArray && (column.width < 1 || column.width > maxPage) {
		p.fail(fault.Corrupt, "column %q of %d bytes", column.Name, column.width)
	}
	p.f.Columns = append(p.f.Columns, column)
	return len(p.f.Columns) - 1
}

func (p *footerParser) keyValue() {
	var key, value []byte
	p.fields(&key, &value)
	size := 64 + len(key) + len(value)
	if p.err != nil || size > maxKeyValue-p.metaBytes {
		return // skip it: smaller entries after it are kept
	}
	p.metaBytes += size
	if p.f.Meta == nil {
		p.f.Meta = map[string]string{}
	}
	p.f.Meta[string(key)] = string(value)
}

func (p *footerParser) rowGroup() {
	group := Group{First: p.f.Rows, Rows: -1}
	p.structure(func(id int, typ byte) {
		switch {
		case id == 1 && typ == tList:
			if n := p.peekList(); group.chunks == nil && n <= len(p.f.Columns) && p.spend(n, chunkCost) {
				group.chunks = make([]columnChunk, 0, n)
			}
			p.list(tStruct, func() {
				if len(group.chunks) == len(p.f.Columns) {
					p.fail(fault.Corrupt, "a row group has more column chunks than the file has columns")
					return
				}
				if p.count++; p.count > maxChunks {
					p.fail(fault.Limit, "more than %d column chunks", maxChunks)
					return
				}
				group.chunks = append(group.chunks, p.columnChunk())
			})
		case id == 3 && typ == tI64:
			group.Rows = p.i64()
		default:
			p.skip(typ)
		}
	})
	if p.err != nil {
		return
	}
	if group.Rows < 0 || group.Rows > math.MaxInt64-p.f.Rows {
		p.fail(fault.Corrupt, "a row group of %d rows", group.Rows)
		return
	}
	if len(group.chunks) != len(p.f.Columns) {
		p.fail(fault.Corrupt, "a row group has %d column chunks for %d columns", len(group.chunks), len(p.f.Columns))
		return
	}
	for i := range group.chunks {
		p.place(&group, &group.chunks[i])
	}
	p.f.Rows += group.Rows
	p.f.Groups = append(p.f.Groups, group)
}

// place checks the byte range of a column chunk. In a row group without rows its offsets are meaningless, and dropped.
func (p *footerParser) place(g *Group, c *columnChunk) {
	size := c.end
	switch {
	case c.foreign:
	case g.Rows == 0:
		*c = columnChunk{}
	case c.start < 4 || c.start > p.limit || size > p.limit-c.start:
		p.fail(fault.Corrupt, "a column chunk of %d bytes at %d in %d bytes of data", size, c.start, p.limit)
	default:
		c.end = c.start + size
	}
}

func (p *footerParser) columnChunk() columnChunk {
	var chunk columnChunk
	size := int64(-1)
	foreign := func(typ byte) {
		chunk.foreign = true
		p.skip(typ)
	}
	var path []byte
	p.fields(&path, nil, func(typ byte) {
		if typ == tStruct {
			size = p.columnMeta(&chunk)
		} else {
			p.skip(typ)
		}
	}, &chunk.indexOff, &chunk.indexLen, &chunk.boundsOff, &chunk.boundsLen, foreign, foreign)
	chunk.foreign = chunk.foreign || len(path) > 0
	if p.err != nil || chunk.foreign {
		return chunk
	}
	if size < 0 {
		p.fail(fault.Corrupt, "a column chunk has no metadata")
		return chunk
	}
	chunk.start = chunk.dataOff
	if chunk.dictOff > 0 && chunk.dictOff < chunk.dataOff {
		chunk.start = chunk.dictOff
	}
	chunk.end = size // until the row group is known to have rows, see place
	outside := func(off int64, size int32) bool {
		return size <= 0 || off < 4 || !source.Fits(off, int64(size), p.limit)
	}
	// A file is read without its indexes too. Wrong ones are ignored: walkPages does without.
	if outside(chunk.indexOff, chunk.indexLen) {
		chunk.indexOff = 0
	}
	if outside(chunk.boundsOff, chunk.boundsLen) {
		chunk.boundsOff = 0
	}
	return chunk
}

// columnMeta reads a ColumnMetaData and returns the bytes of the chunk's pages.
func (p *footerParser) columnMeta(c *columnChunk) (size int64) {
	size = -1
	p.fields(nil, nil, nil, &c.codec, nil, nil, &size, nil, &c.dataOff, nil, &c.dictOff, func(typ byte) {
		if typ == tStruct {
			c.stats = int32(p.at)
		}
		p.skip(typ)
	})
	return size
}

// NoColumn returns the error for a column that does not exist.
func (f *File) NoColumn(name string) error {
	member := func(c Column) bool { return strings.HasPrefix(c.Name, name+".") }
	if i := slices.IndexFunc(f.Columns, member); i >= 0 {
		way := "it holds structs: name a member"
		if f.Columns[i].Repeated {
			way = "it holds lists of structs: give each struct a row of its own, as DataFrame.explode does, or name " +
				"a member"
		}
		return fault.New(fault.Unsupported, "column "+name, "%s, as in %q", way, f.Columns[i].Name)
	}
	return fault.New(fault.NotFound, "schema", "no column %q; there are %s", name,
		fault.Near(name, f.Columns, func(c Column) string { return c.Name }))
}
