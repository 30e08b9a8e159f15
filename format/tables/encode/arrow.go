package encode

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/chaski-eo/chaski/format/tables"
)

// Numbers of Arrow's Schema.fbs and Message.fbs.
const (
	metadataV5 = 4

	headerSchema = 1

	typeNull      = 1
	typeInt       = 2
	typeFloat     = 3
	typeBinary    = 4
	typeUtf8      = 5
	typeBool      = 6
	typeDecimal   = 7
	typeDate      = 8
	typeTime      = 9
	typeTimestamp = 10
	typeList      = 12
	typeStruct    = 13

	precisionSingle = 1
	precisionDouble = 2
	unitDay         = 0
	unitSecond      = 0
	unitMillisecond = 1
	unitMicrosecond = 2
	unitNanosecond  = 3
)

// Numbers of Arrow's Schema.fbs for types that are not the default of a kind.
const (
	typeFixedBinary   = 15
	typeFixedList     = 16
	typeMap           = 17
	typeDuration      = 18
	typeLargeUtf8     = 20
	typeLargeList     = 21
	typeUtf8View      = 24
	typeListView      = 25
	typeLargeListView = 26
)

// hasForm reports whether values of a column are stored in another form than the default of their kind: Parquet then
// needs encodedSchema beside its own.
func hasForm(c tables.Column) bool {
	return c.Type.Any(func(t tables.Type) bool { return t.Form != nil })
}

// encodedSchema returns the schema of columns as a Parquet file has it under tables.ArrowKey: a message of the Arrow
// IPC format, metadata version 5 (https://arrow.apache.org/docs/format/Columnar.html). meta is the key-value metadata
// of the file, which pyarrow takes from here alone.
func encodedSchema(cols []tables.Column, meta map[string]string) string {
	message := arrowSchema(cols, meta)
	padded := (len(message) + 7) &^ 7
	out := binary.LittleEndian.AppendUint32([]byte{0xFF, 0xFF, 0xFF, 0xFF}, uint32(padded))
	out = append(append(out, message...), make([]byte, padded-len(message))...)
	return base64.StdEncoding.EncodeToString(out)
}

// metadataOf writes the metadata of a field: the name and parameters of an extension type, and a description. It
// returns 0 for none.
func metadataOf(b *flatbuffers.Builder, f tables.Form) flatbuffers.UOffsetT {
	var pairs [][2]string
	if f.Extension != "" {
		pairs = append(pairs, [2]string{tables.ArrowExtension, f.Extension},
			[2]string{tables.ArrowExtensionMeta, f.Metadata})
	}
	if f.Note != "" {
		pairs = append(pairs, [2]string{"description", f.Note})
	}
	return arrowPairs(b, pairs)
}

// arrowPairs writes metadata, or returns 0 for none.
func arrowPairs(b *flatbuffers.Builder, pairs [][2]string) flatbuffers.UOffsetT {
	if pairs == nil {
		return 0
	}
	var list []flatbuffers.UOffsetT
	for _, pair := range pairs {
		key, value := b.CreateString(pair[0]), b.CreateString(pair[1])
		b.StartObject(2)
		b.PrependUOffsetTSlot(0, key, 0)
		b.PrependUOffsetTSlot(1, value, 0)
		list = append(list, b.EndObject())
	}
	return vector(b, list)
}

// dictionary writes how a column is coded, or returns 0 if it is not. Dictionaries are numbered in the order of fields.
func (s *schemaBuilder) dictionary(f tables.Form) flatbuffers.UOffsetT {
	if f.Store != tables.Coded {
		return 0
	}
	builder, id := s.Builder, s.coded
	s.coded++
	_, width := object(builder, typeInt, 2, func() {
		builder.PrependInt32Slot(0, f.Size, 0)
		builder.PrependBoolSlot(1, !f.Unsigned, false)
	})
	_, codes := object(builder, 0, 4, func() {
		builder.PrependInt64Slot(0, id, 0)
		builder.PrependUOffsetTSlot(1, width, 0)
		builder.PrependBoolSlot(2, f.Ordered, false)
	})
	return codes
}

// pairs writes the child of a map: a struct with a key and a value; the struct and the key are required.
func (s *schemaBuilder) pairs(pair []tables.Column) flatbuffers.UOffsetT {
	builder := s.Builder
	name := builder.CreateString("entries")
	children := vector(builder, []flatbuffers.UOffsetT{
		s.field(tables.Column{Name: "key", Type: pair[0].Type}, false),
		s.field(tables.Column{Name: "value", Type: pair[1].Type}, true)})
	_, typ := object(builder, typeStruct, 0, nil)
	_, entries := object(builder, 0, 7, func() {
		builder.PrependUOffsetTSlot(0, name, 0)
		builder.PrependByteSlot(2, typeStruct, 0)
		builder.PrependUOffsetTSlot(3, typ, 0)
		builder.PrependUOffsetTSlot(5, children, 0)
	})
	return vector(builder, []flatbuffers.UOffsetT{entries})
}

// arrowUnit returns the unit of a time or timestamp.
func arrowUnit(t tables.Type) int16 {
	switch {
	case t.Nano:
		return unitNanosecond
	case t.Stored().Store == tables.Seconds:
		return unitSecond
	case t.Stored().Unit == 3:
		return unitMillisecond
	}
	return unitMicrosecond
}

// plainStores are the numbers of forms without parameters. Bytes have the number before the number of strings.
var plainStores = map[tables.Store]byte{tables.LargeList: typeLargeList, tables.ListView: typeListView,
	tables.LargeListView: typeLargeListView, tables.LargeText: typeLargeUtf8, tables.TextView: typeUtf8View}

// arrowStored writes a type in the form that a file has it, and returns its number in the union Type.
func arrowStored(b *flatbuffers.Builder, t tables.Type) (byte, flatbuffers.UOffsetT) {
	form := t.Stored()
	if number := plainStores[form.Store]; number != 0 {
		if t.Kind == tables.Binary {
			number--
		}
		return object(b, number, 0, nil)
	}
	switch form.Store {
	case tables.Map:
		return object(b, typeMap, 1, nil)
	case tables.FixedList:
		return object(b, typeFixedList, 1, func() { b.PrependInt32Slot(0, form.Size, 0) })
	case tables.FixedBytes:
		return object(b, typeFixedBinary, 1, func() { b.PrependInt32Slot(0, form.Size, 0) })
	case tables.Duration:
		return object(b, typeDuration, 1, func() { b.PrependInt16Slot(0, int16(form.Unit/3), unitMillisecond) })
	case tables.Decimals:
		if t.Kind == tables.Binary {
			return arrowDecimal(b, form.Precision, form.Scale, 256)
		}
		return arrowDecimal(b, int32(t.Precision), int32(t.Scale), form.Size)
	}
	return arrowType(b, t)
}

func arrowDecimal(b *flatbuffers.Builder, precision, scale, bits int32) (byte, flatbuffers.UOffsetT) {
	return object(b, typeDecimal, 3, func() {
		b.PrependInt32Slot(0, precision, 0)
		b.PrependInt32Slot(1, scale, 0)
		b.PrependInt32Slot(2, bits, 128)
	})
}

// arrowSchema writes the schema of columns. meta, which may be nil, is its metadata.
func arrowSchema(cols []tables.Column, meta map[string]string) []byte {
	builder := &schemaBuilder{Builder: flatbuffers.NewBuilder(1024)}
	var list [][2]string
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		list = append(list, [2]string{key, meta[key]})
	}
	fields, metadata := builder.fieldsOf(cols), arrowPairs(builder.Builder, list)
	builder.StartObject(4)
	builder.PrependUOffsetTSlot(1, fields, 0)
	builder.PrependUOffsetTSlot(2, metadata, 0)
	header := builder.EndObject()
	builder.StartObject(5)
	builder.PrependInt16Slot(0, metadataV5, 0)
	builder.PrependByteSlot(1, headerSchema, 0)
	builder.PrependUOffsetTSlot(2, header, 0)
	builder.Finish(builder.EndObject())
	return builder.FinishedBytes()
}

// schemaBuilder writes a schema.
type schemaBuilder struct {
	*flatbuffers.Builder
	coded int64 // dictionaries so far
}

func (s *schemaBuilder) fieldsOf(cols []tables.Column) flatbuffers.UOffsetT {
	list := make([]flatbuffers.UOffsetT, len(cols))
	for i, c := range cols {
		list[i] = s.field(c, true)
	}
	return vector(s.Builder, list)
}

// vector writes a vector of tables.
func vector(b *flatbuffers.Builder, list []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	b.StartVector(4, len(list), 4)
	for i := len(list) - 1; i >= 0; i-- {
		b.PrependUOffsetT(list[i])
	}
	return b.EndVector(len(list))
}

func (s *schemaBuilder) field(c tables.Column, nullable bool) flatbuffers.UOffsetT {
	builder := s.Builder
	var below []tables.Column
	switch c.Type.Kind {
	case tables.List:
		below = []tables.Column{{Name: "element", Type: *c.Type.Elem}}
	case tables.Struct:
		below = c.Type.Fields
	}
	form := c.Type.Stored()
	name, metadata, codes := builder.CreateString(c.Name), metadataOf(builder, form), s.dictionary(form)
	children := flatbuffers.UOffsetT(0)
	if form.Store == tables.Map {
		children = s.pairs(c.Type.Elem.Fields)
	} else {
		children = s.fieldsOf(below)
	}
	kind, typ := arrowStored(builder, c.Type)
	builder.StartObject(7)
	builder.PrependUOffsetTSlot(0, name, 0)
	builder.PrependBoolSlot(1, nullable && !form.Required, false)
	builder.PrependByteSlot(2, kind, 0)
	builder.PrependUOffsetTSlot(3, typ, 0)
	builder.PrependUOffsetTSlot(4, codes, 0)
	builder.PrependUOffsetTSlot(5, children, 0)
	builder.PrependUOffsetTSlot(6, metadata, 0)
	return builder.EndObject()
}

// object writes a table of n slots that describes a type.
func object(b *flatbuffers.Builder, kind byte, n int, fill func()) (byte, flatbuffers.UOffsetT) {
	b.StartObject(n)
	if fill != nil {
		fill()
	}
	return kind, b.EndObject()
}

// plainTypes are the numbers of types without parameters.
var plainTypes = map[tables.Kind]byte{tables.Null: typeNull, tables.Bool: typeBool, tables.String: typeUtf8,
	tables.Binary: typeBinary, tables.List: typeList, tables.Struct: typeStruct}

// arrowType writes a type in the default form of its kind, and returns its number in the union Type.
func arrowType(b *flatbuffers.Builder, t tables.Type) (byte, flatbuffers.UOffsetT) {
	object := func(kind byte, n int, fill func()) (byte, flatbuffers.UOffsetT) { return object(b, kind, n, fill) }
	switch t.Kind {
	case tables.Int64, tables.Uint64:
		return object(typeInt, 2, func() {
			b.PrependInt32Slot(0, int32(bits(t)), 0)
			b.PrependBoolSlot(1, t.Kind == tables.Int64, false)
		})
	case tables.Float64:
		p := map[int]int16{32: precisionSingle, 64: precisionDouble}[bits(t)] // HALF is 0
		return object(typeFloat, 1, func() { b.PrependInt16Slot(0, p, 0) })
	case tables.Decimal:
		return arrowDecimal(b, int32(t.Precision), int32(t.Scale), 128)
	case tables.Timestamp:
		unit, form := arrowUnit(t), t.Stored()
		var zone flatbuffers.UOffsetT
		if t.UTC && form.Zone != "" {
			zone = b.CreateString(form.Zone)
		} else if t.UTC {
			zone = b.CreateString("UTC")
		}
		return object(typeTimestamp, 2, func() {
			b.PrependInt16Slot(0, unit, 0)
			b.PrependUOffsetTSlot(1, zone, 0)
		})
	case tables.Date:
		unit := int16(unitDay)
		if t.Stored().Store == tables.Millis {
			unit = 1
		}
		return object(typeDate, 1, func() { b.PrependInt16Slot(0, unit, 1) })
	case tables.Time:
		return object(typeTime, 2, func() {
			unit, width := arrowUnit(t), int32(64)
			if unit <= unitMillisecond {
				width = 32
			}
			b.PrependInt16Slot(0, unit, unitMillisecond)
			b.PrependInt32Slot(1, width, 32)
		})
	}
	return object(plainTypes[t.Kind], 0, nil)
}

// bits returns the width of a number in Arrow.
func bits(t tables.Type) int {
	if t.Bits == 0 {
		return 64
	}
	return int(t.Bits)
}

// decimalBits returns the width of a decimal.
func decimalBits(t tables.Type) int {
	if f := t.Stored(); f.Store == tables.Decimals {
		return int(f.Size)
	}
	return 128
}
