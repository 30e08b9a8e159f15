// Package arrow writes tables in the Arrow IPC streaming format, metadata version 5
// (https://arrow.apache.org/docs/format/Columnar.html), which pyarrow, polars and DuckDB read without a copy.
// It does not read streams, and does not compress.
//
// A column has the type that it has in its file, also where only the Arrow schema of the file says it. Times that 64
// bits of nanoseconds do not hold are in microseconds.
package arrow

import (
	"context"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Numbers of Arrow's Schema.fbs and Message.fbs.
const (
	metadataV5 = 4

	headerSchema      = 1
	headerDictionary  = 2
	headerRecordBatch = 3

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

// batchRows is the number of rows of a record batch: a column of 8-byte numbers is then 1 MiB.
const batchRows = 1 << 17

// Write writes a table as one stream. It needs memory for the table, and about as much for a batch of 131,072 rows of
// it. Strings of more than 2 GiB in such a batch are fault.Limit.
func Write(ctx context.Context, w io.Writer, t *tables.Table) error {
	cols, err := columns(ctx, t)
	if err != nil {
		return err
	}
	fields := Fitted(ctx, t)
	if err := message(w, schema(fields, nil), nil); err != nil {
		return err
	}
	// Dictionaries need to come before the batches that refer to them.
	codes := &coder{w: w}
	for i, values := range cols {
		err := CheckForm(fields[i].Type, values)
		if err == nil {
			err = codes.add(fields[i].Type, values)
		}
		if err != nil {
			return fault.WithPart(err, "column "+fields[i].Name, fault.NoOffset)
		}
	}
	rows := max(1, min(batchRows, maxPadding/padding(tables.Type{Kind: tables.Struct, Fields: fields})))
	for first := 0; first < t.Len(); first += rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch := batch{n: min(rows, t.Len()-first), codes: codes.columns}
		for i, values := range cols {
			if err := batch.add(fields[i].Type, values, first, first+batch.n); err != nil {
				return fault.WithPart(err, "column "+fields[i].Name, fault.NoOffset)
			}
		}
		if err := message(w, batch.message(headerRecordBatch, 0), batch.body); err != nil {
			return err
		}
	}
	_, err = w.Write([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0})
	return err
}

// columns returns all columns of a table. It loads them in parallel.
func columns(ctx context.Context, t *tables.Table) ([]*tables.Vector, error) {
	cols := make([]*tables.Vector, len(t.Columns()))
	err := each.Of(ctx, int64(len(cols)), runtime.GOMAXPROCS(0), func(ctx context.Context, i int64) (err error) {
		cols[i], err = t.At(ctx, int(i))
		return err
	})
	return cols, err
}

// message writes one message: its length, metadata and body, each padded to 8 bytes.
func message(w io.Writer, metadata []byte, body [][]byte) error {
	head := binary.LittleEndian.AppendUint32([]byte{0xFF, 0xFF, 0xFF, 0xFF}, uint32(padded(len(metadata))))
	head = append(head, metadata...)
	if _, err := w.Write(pad(head, len(metadata))); err != nil {
		return err
	}
	var zeros [8]byte
	for _, data := range body {
		if _, err := w.Write(data); err != nil {
			return err
		}
		if n := padded(len(data)) - len(data); n > 0 {
			if _, err := w.Write(zeros[:n]); err != nil {
				return err
			}
		}
	}
	return nil
}

func padded(n int) int { return (n + 7) &^ 7 }

func pad(b []byte, n int) []byte { return append(b, make([]byte, padded(n)-n)...) }

// finish makes the metadata of a message from its header.
func finish(b *flatbuffers.Builder, kind byte, header flatbuffers.UOffsetT, body int64) []byte {
	b.StartObject(5)
	b.PrependInt16Slot(0, metadataV5, 0)
	b.PrependByteSlot(1, kind, 0)
	b.PrependUOffsetTSlot(2, header, 0)
	b.PrependInt64Slot(3, body, 0)
	b.Finish(b.EndObject())
	return b.FinishedBytes()
}

// schema writes the schema of columns. meta, which may be nil, is its metadata.
func schema(cols []tables.Column, meta map[string]string) []byte {
	builder := &schemaBuilder{Builder: flatbuffers.NewBuilder(1024)}
	var list [][2]string
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		list = append(list, [2]string{key, meta[key]})
	}
	fields, metadata := builder.fieldsOf(cols), keyValues(builder.Builder, list)
	builder.StartObject(4)
	builder.PrependUOffsetTSlot(1, fields, 0)
	builder.PrependUOffsetTSlot(2, metadata, 0)
	return finish(builder.Builder, headerSchema, builder.EndObject(), 0)
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
	kind, typ := storedOf(builder, c.Type)
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

// typeOf writes a type in the default form of its kind, and returns its number in the union Type.
func typeOf(b *flatbuffers.Builder, t tables.Type) (byte, flatbuffers.UOffsetT) {
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
		return decimalOf(b, int32(t.Precision), int32(t.Scale), 128)
	case tables.Timestamp:
		unit, form := unitOf(t), t.Stored()
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
			unit, width := unitOf(t), int32(64)
			if unit <= unitMillisecond {
				width = 32
			}
			b.PrependInt16Slot(0, unit, unitMillisecond)
			b.PrependInt32Slot(1, width, 32)
		})
	}
	return object(plainTypes[t.Kind], 0, nil)
}

// narrow returns integers in their width.
func narrow(s []int64, width int) []byte {
	if width == 64 {
		if p, ok := cast.Bytes(s); ok {
			return p
		}
	}
	size := width / 8
	out := make([]byte, len(s)*size)
	for i, x := range s {
		cast.PutUint(out[i*size:], size, uint64(x))
	}
	return out
}

func floats(s []float64, width int) []byte {
	if width == 64 {
		if p, ok := cast.Bytes(s); ok {
			return p
		}
	}
	out := make([]byte, 0, len(s)*width/8)
	for _, x := range s {
		switch width {
		case 16:
			out = binary.LittleEndian.AppendUint16(out, kernel.Float16FromFloat32(float32(x)))
		case 32:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(x)))
		default:
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
		}
	}
	return out
}
