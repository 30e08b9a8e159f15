package arrow

import (
	"bytes"
	"encoding/base64"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/chaski-eo/chaski/format/tables"
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

// HasForms reports whether some column is stored in another form than the default of its kind: Parquet then needs
// EncodedSchema beside its own.
func HasForms(cols []tables.Column) bool {
	for _, column := range cols {
		if column.Type.Form != nil || HasForms(column.Type.Fields) ||
			column.Type.Elem != nil && HasForms([]tables.Column{{Type: *column.Type.Elem}}) {
			return true
		}
	}
	return false
}

// EncodedSchema returns the schema of columns as a Parquet file has it under tables.ArrowKey. meta is the key-value
// metadata of the file, which pyarrow takes from here alone.
func EncodedSchema(cols []tables.Column, meta map[string]string) string {
	var encoded bytes.Buffer
	_ = message(&encoded, schema(cols, meta), nil) // a buffer takes all
	return base64.StdEncoding.EncodeToString(encoded.Bytes())
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
	return keyValues(b, pairs)
}

// keyValues writes metadata, or returns 0 for none.
func keyValues(b *flatbuffers.Builder, pairs [][2]string) flatbuffers.UOffsetT {
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

// pairs writes the child of a map: a struct, which is not null, with a key, which is not null either, and a value.
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

// unitOf returns the unit of a time or timestamp.
func unitOf(t tables.Type) int16 {
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

// storedOf writes a type in the form that a file has it, and returns its number in the union Type.
func storedOf(b *flatbuffers.Builder, t tables.Type) (byte, flatbuffers.UOffsetT) {
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
			return decimalOf(b, form.Precision, form.Scale, 256)
		}
		return decimalOf(b, int32(t.Precision), int32(t.Scale), form.Size)
	}
	return typeOf(b, t)
}

func decimalOf(b *flatbuffers.Builder, precision, scale, bits int32) (byte, flatbuffers.UOffsetT) {
	return object(b, typeDecimal, 3, func() {
		b.PrependInt32Slot(0, precision, 0)
		b.PrependInt32Slot(1, scale, 0)
		b.PrependInt32Slot(2, bits, 128)
	})
}
