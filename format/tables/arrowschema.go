package tables

import (
	"encoding/base64"
	"encoding/binary"
	"slices"

	flatbuffers "github.com/google/flatbuffers/go"
)

// ArrowKey is the entry of a Parquet file's metadata that has its schema in Arrow's words: what Parquet lacks, such as
// durations and lists of one length. The value is an IPC message of Schema.fbs, in base64.
const ArrowKey = "ARROW:schema"

// Entries of the metadata of a field in Arrow's schema that name its extension type.
const (
	ArrowExtension     = "ARROW:extension:name"
	ArrowExtensionMeta = "ARROW:extension:metadata"
)

// Numbers of the union Type in Schema.fbs that change a form.
const (
	arrowDecimal       = 7
	arrowDate          = 8
	arrowTime          = 9
	arrowTimestamp     = 10
	arrowFixedList     = 16
	arrowDuration      = 18
	arrowLargeBinary   = 19
	arrowLargeUtf8     = 20
	arrowLargeList     = 21
	arrowBinaryView    = 23
	arrowUtf8View      = 24
	arrowListView      = 25
	arrowLargeListView = 26
)

// arrowStores are the forms that a type of Arrow gives by its number alone.
var arrowStores = map[byte]Store{arrowLargeBinary: LargeText, arrowLargeUtf8: LargeText, arrowLargeList: LargeList,
	arrowBinaryView: TextView, arrowUtf8View: TextView, arrowListView: ListView, arrowLargeListView: LargeListView,
	arrowFixedList: FixedList, arrowDuration: Duration}

// arrowField is a field of Arrow's schema.
type arrowField struct {
	kind      byte
	size      int32 // of fixed-size lists, and the bits of decimals
	unit      uint8 // digits after the second; of dates 0 for days
	zone      string
	coded     int32 // bits of the codes of a dictionary, else 0
	unsigned  bool  // the codes
	ordered   bool
	extension [2]string // name and metadata
	children  []arrowField
}

// arrowFields parses the schema in Arrow's words. It returns nil if the text is empty or broken, or if it or has other
// columns than the file: the schema of Parquet alone then says what the columns are, and all values can be read by it.
func arrowFields(encoded string, columns int) (fields []arrowField) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(data) < 8 {
		return nil
	}
	// Before version 0.15 of Arrow, messages began with their length.
	if binary.LittleEndian.Uint32(data) == 0xFFFFFFFF {
		data = data[4:]
	}
	data = data[4:]
	if len(data) < 8 {
		return nil
	}
	// FlatBuffers of Go has no verifier. Offsets beyond data panic, and nothing is allocated by a length, so
	// recovering is enough.
	defer func() {
		if recover() != nil {
			fields = nil
		}
	}()
	message := table(data, flatbuffers.GetUOffsetT(data))
	schema, ok := message.below(2)
	if !ok {
		return nil
	}
	left := arrowLeft{fields: maxArrowFields, text: len(data)}
	fields = schema.fields(1, &left, 0)
	if left.isExceeded() || len(fields) != columns {
		return nil
	}
	return fields
}

// arrowLeft says how much more a schema may have in all.
type arrowLeft struct {
	fields int
	text   int // bytes that are kept of texts: many fields may refer to one long text
}

func (l *arrowLeft) isExceeded() bool { return l.fields < 0 || l.text < 0 }

// Limits of a schema in Arrow's words. Parquet's own schema has the same, see package parquet.
const (
	maxArrowFields = 1 << 16
	maxArrowDepth  = 64
)

// flat reads a table of FlatBuffers by the numbers of its slots.
type flat struct{ flatbuffers.Table }

func table(b []byte, pos flatbuffers.UOffsetT) flat {
	return flat{flatbuffers.Table{Bytes: b, Pos: pos}}
}

// slot returns where a member begins, or 0 if it is absent.
func (t flat) slot(i int) flatbuffers.UOffsetT {
	off := t.Offset(flatbuffers.VOffsetT(4 + 2*i))
	if off == 0 {
		return 0
	}
	return flatbuffers.UOffsetT(off) + t.Pos
}

func (t flat) below(i int) (flat, bool) {
	pos := t.slot(i)
	if pos == 0 {
		return flat{}, false
	}
	return table(t.Bytes, t.Indirect(pos)), true
}

// unit returns the unit of a type, which is its first member.
func (t flat) unit(missing int16) uint8 { return uint8(3 * min(max(t.GetInt16Slot(4, missing), 0), 3)) }

func (t flat) int32(i int, missing int32) int32 {
	return t.GetInt32Slot(flatbuffers.VOffsetT(4+2*i), missing)
}

func (t flat) bool(i int) bool {
	pos := t.slot(i)
	return pos != 0 && t.GetBool(pos)
}

// bytes returns a text without copying it, or nil.
func (t flat) bytes(i int) []byte {
	if pos := t.slot(i); pos != 0 {
		return t.ByteVector(pos)
	}
	return nil
}

// text returns a copy of a text, or "" if the schema may not have that much.
func (t flat) text(i int, left *arrowLeft) string {
	data := t.bytes(i)
	if left.text -= len(data); left.text < 0 {
		return ""
	}
	return string(data)
}

// tables returns the tables of a vector.
func (t flat) tables(i int, left *arrowLeft) []flat {
	if t.slot(i) == 0 {
		return nil
	}
	off := flatbuffers.UOffsetT(t.Offset(flatbuffers.VOffsetT(4 + 2*i)))
	start, count := t.Vector(off), t.VectorLen(off)
	var out []flat
	for k := 0; k < count && !left.isExceeded(); k++ {
		left.fields--
		out = append(out, table(t.Bytes, t.Indirect(start+flatbuffers.UOffsetT(4*k))))
	}
	return out
}

// fields parses a vector of Field.
func (t flat) fields(i int, left *arrowLeft, depth int) []arrowField {
	if depth > maxArrowDepth {
		left.fields = -1
		return nil
	}
	var out []arrowField
	for _, child := range t.tables(i, left) {
		field := child.field(left)
		field.children = child.fields(5, left, depth+1)
		out = append(out, field)
	}
	return out
}

// field parses a Field without its children.
func (t flat) field(left *arrowLeft) (f arrowField) {
	if pos := t.slot(2); pos != 0 {
		f.kind = t.GetByte(pos)
	}
	if codes, ok := t.below(4); ok {
		f.coded = 32
		if width, ok := codes.below(1); ok {
			f.coded, f.unsigned = width.int32(0, 32), !width.bool(1)
		}
		f.ordered = codes.bool(2)
	}
	for _, pair := range t.tables(6, left) {
		switch string(pair.bytes(0)) { // compared, not copied
		case ArrowExtension:
			f.extension[0] = pair.text(1, left)
		case ArrowExtensionMeta:
			f.extension[1] = pair.text(1, left)
		}
	}
	typ, ok := t.below(3)
	if !ok {
		return f
	}
	switch f.kind {
	case arrowDecimal:
		f.size = typ.int32(2, 128)
	case arrowTimestamp:
		f.zone, f.unit = typ.text(1, left), typ.unit(0)
	case arrowFixedList:
		f.size = typ.int32(0, 0)
	case arrowDuration, arrowTime, arrowDate:
		f.unit = typ.unit(1)
	}
	return f
}

// inArrow returns a type of Parquet with the forms that its field of Arrow's schema adds. A field that does not fit the
// type is left out.
func (t Type) inArrow(a *arrowField) Type {
	form := t.Stored()
	store := arrowStores[a.kind]
	switch {
	case t.Kind == Int64 && t.Bits == 64 && store == Duration:
		form.Store, form.Unit = Duration, a.unit
	case (t.Kind == String || t.Kind == Binary) && form.Store == Default &&
		(a.coded == 8 || a.coded == 16 || a.coded == 32 || a.coded == 64):
		form.Store, form.Size, form.Unsigned, form.Ordered = Coded, a.coded, a.unsigned, a.ordered
	case t.Kind == String && (a.kind == arrowLargeUtf8 || a.kind == arrowUtf8View),
		t.Kind == Binary && form.Store == Default && (a.kind == arrowLargeBinary || a.kind == arrowBinaryView):
		form.Store = store
	case t.Kind == List && form.Store == Default && store == FixedList && a.size > 0:
		form.Store, form.Size = FixedList, a.size
	case t.Kind == List && form.Store == Default && slices.Contains([]Store{LargeList, ListView, LargeListView}, store):
		form.Store = store
	case t.Kind == Timestamp && t.UTC && a.zone != "UTC":
		form.Zone = a.zone
	case t.Kind == Decimal && a.kind == arrowDecimal &&
		(a.size == 32 && t.Precision <= 9 || a.size == 64 && t.Precision <= 18 || a.size == 256):
		form.Store, form.Size = Decimals, a.size
	}
	times := t.Kind == Timestamp && a.kind == arrowTimestamp || t.Kind == Time && a.kind == arrowTime
	switch {
	case times && form.Unit == 3 && a.unit == 0:
		form.Store = Seconds
	case t.Kind == Date && a.kind == arrowDate && a.unit == 3:
		form.Store = Millis
	}
	if a.extension[0] != "" {
		form.Extension, form.Metadata = a.extension[0], a.extension[1]
	}
	t = t.formed(form)
	switch {
	case t.Kind == List && len(a.children) == 1:
		elem := t.Elem.inArrow(&a.children[0])
		t.Elem = &elem
	case t.Kind == Struct && len(a.children) == len(t.Fields):
		fields := make([]Column, len(t.Fields))
		for i, c := range t.Fields {
			fields[i] = Column{Name: c.Name, Type: c.Type.inArrow(&a.children[i])}
		}
		t.Fields = fields
	}
	return t
}
