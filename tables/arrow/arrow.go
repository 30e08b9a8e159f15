// Package arrow writes tables in the Arrow IPC streaming format, metadata version 5
// (https://arrow.apache.org/docs/format/Columnar.html), which pyarrow, polars and DuckDB read without a copy.
// It does not read streams, and writes neither compressed nor dictionary-encoded columns.
//
// A column has the type that it has in its file, but for times and texts, which have one form each:
// timestamps are in microseconds, or in nanoseconds where the file counts those, with the zone UTC
// where the file says that they are instants; integers of 128 bits are decimals of 38 digits;
// float16 is float32.
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
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/tables"
)

// Numbers of Arrow's Schema.fbs and Message.fbs.
const (
	metadataV5 = 4

	headerSchema      = 1
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
	fields := clocks(t.Columns(), cols)
	if err := message(w, schema(fields, nil), nil); err != nil {
		return err
	}
	for first := 0; first < t.Len(); first += batchRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := batch{n: min(batchRows, t.Len()-first)}
		for i, values := range cols {
			if fields[i].Type.Nano {
				b.nanoseconds(values, first, first+b.n)
			} else if err := b.add(values, first, first+b.n); err != nil {
				return fault.WithPart(err, "column "+t.Columns()[i].Name, fault.NoOffset)
			}
		}
		if err := message(w, b.header(), b.body); err != nil {
			return err
		}
	}
	_, err = w.Write([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0})
	return err
}

// clocks returns the columns with the units in which they are written: timestamps with nanoseconds in nanoseconds, if
// 64 bits hold all of them (years 1678 to 2261), otherwise in microseconds.
func clocks(cols []tables.Column, values []*tables.Vector) []tables.Column {
	out := slices.Clone(cols)
	for i, v := range values {
		out[i].Type = out[i].Type.SQL()
		out[i].Type.Nano = v.Type().Kind == tables.Timestamp && out[i].Type.Nano && nanosFit(v)
	}
	return out
}

// nanosFit reports whether 64 bits of nanoseconds hold all timestamps.
func nanosFit(v *tables.Vector) bool {
	for i, us := range v.Ints() {
		if (us >= math.MaxInt64/1000 || us <= math.MinInt64/1000) && !v.Null(i) {
			return false
		}
	}
	return true
}

// nanoseconds adds rows of a column of timestamps, in nanoseconds.
func (b *batch) nanoseconds(v *tables.Vector, lo, hi int) {
	b.validity(v.Nulls(), lo, hi)
	out, ints, after := make([]byte, 0, 8*(hi-lo)), v.Ints(), v.Nanos()
	for i := lo; i < hi; i++ {
		ns := ints[i] * 1000
		if after != nil {
			ns += after[i]
		}
		out = binary.LittleEndian.AppendUint64(out, uint64(ns))
	}
	b.buffer(out)
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
	builder := flatbuffers.NewBuilder(1024)
	var list [][2]string
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		list = append(list, [2]string{key, meta[key]})
	}
	fields, metadata := fieldsOf(builder, cols), keyValues(builder, list)
	builder.StartObject(4)
	builder.PrependUOffsetTSlot(1, fields, 0)
	builder.PrependUOffsetTSlot(2, metadata, 0)
	return finish(builder, headerSchema, builder.EndObject(), 0)
}

func fieldsOf(b *flatbuffers.Builder, cols []tables.Column) flatbuffers.UOffsetT {
	list := make([]flatbuffers.UOffsetT, len(cols))
	for i, c := range cols {
		list[i] = field(b, c, true)
	}
	return vector(b, list)
}

// vector writes a vector of tables.
func vector(b *flatbuffers.Builder, list []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	b.StartVector(4, len(list), 4)
	for i := len(list) - 1; i >= 0; i-- {
		b.PrependUOffsetT(list[i])
	}
	return b.EndVector(len(list))
}

func field(b *flatbuffers.Builder, c tables.Column, nullable bool) flatbuffers.UOffsetT {
	var below []tables.Column
	switch c.Type.Kind {
	case tables.List:
		below = []tables.Column{{Name: "element", Type: *c.Type.Elem}}
	case tables.Struct:
		below = c.Type.Fields
	}
	form := c.Type.Stored()
	name, metadata, codes := b.CreateString(c.Name), metadataOf(b, form), dictionary(b, form)
	children := flatbuffers.UOffsetT(0)
	if form.Store == tables.Map {
		children = pairs(b, c.Type.Elem.Fields)
	} else {
		children = fieldsOf(b, below)
	}
	kind, typ := storedOf(b, c.Type)
	b.StartObject(7)
	b.PrependUOffsetTSlot(0, name, 0)
	b.PrependBoolSlot(1, nullable && !form.Required, false)
	b.PrependByteSlot(2, kind, 0)
	b.PrependUOffsetTSlot(3, typ, 0)
	b.PrependUOffsetTSlot(4, codes, 0)
	b.PrependUOffsetTSlot(5, children, 0)
	b.PrependUOffsetTSlot(6, metadata, 0)
	return b.EndObject()
}

// object writes a table of n slots that describes a type.
func object(b *flatbuffers.Builder, kind byte, n int, fill func()) (byte, flatbuffers.UOffsetT) {
	b.StartObject(n)
	if fill != nil {
		fill()
	}
	return kind, b.EndObject()
}

// typeOf writes a type in the default form of its kind, and returns its number in the union Type.
func typeOf(b *flatbuffers.Builder, t tables.Type) (byte, flatbuffers.UOffsetT) {
	object := func(kind byte, n int, fill func()) (byte, flatbuffers.UOffsetT) { return object(b, kind, n, fill) }
	switch t.Kind {
	case tables.Bool:
		return object(typeBool, 0, nil)
	case tables.Int64, tables.Uint64:
		return object(typeInt, 2, func() {
			b.PrependInt32Slot(0, int32(bits(t)), 0)
			b.PrependBoolSlot(1, t.Kind == tables.Int64, false)
		})
	case tables.Float64:
		p := int16(precisionDouble)
		if bits(t) < 64 {
			p = precisionSingle
		}
		return object(typeFloat, 1, func() { b.PrependInt16Slot(0, p, 0) })
	case tables.Huge, tables.Decimal:
		return object(typeDecimal, 3, func() {
			precision, scale := int32(38), int32(0)
			if t.Kind == tables.Decimal {
				precision, scale = int32(t.Precision), int32(t.Scale)
			}
			b.PrependInt32Slot(0, precision, 0)
			b.PrependInt32Slot(1, scale, 0)
			b.PrependInt32Slot(2, 128, 128)
		})
	case tables.String:
		return object(typeUtf8, 0, nil)
	case tables.Binary:
		return object(typeBinary, 0, nil)
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
		return object(typeDate, 1, func() { b.PrependInt16Slot(0, unitDay, 1) })
	case tables.Time:
		return object(typeTime, 2, func() {
			unit, width := unitOf(t), int32(64)
			if unit == unitMillisecond {
				width = 32
			}
			b.PrependInt16Slot(0, unit, unitMillisecond)
			b.PrependInt32Slot(1, width, 32)
		})
	case tables.List:
		return object(typeList, 0, nil)
	case tables.Struct:
		return object(typeStruct, 0, nil)
	}
	return object(typeNull, 0, nil)
}

// bits returns the width of a number in the stream.
func bits(t tables.Type) int {
	switch {
	case t.Bits == 0:
		return 64
	case t.Kind == tables.Float64 && t.Bits < 32:
		return 32
	}
	return int(t.Bits)
}

// batch is a record batch that is being built.
type batch struct {
	n     int
	nodes [][2]int64 // length, nulls
	spans [][2]int64 // offset, length
	body  [][]byte
	size  int64
}

func (b *batch) buffer(p []byte) {
	b.spans = append(b.spans, [2]int64{b.size, int64(len(p))})
	b.body = append(b.body, p)
	b.size += int64(padded(len(p)))
}

// header returns the metadata of the batch.
func (b *batch) header() []byte {
	builder := flatbuffers.NewBuilder(1024)
	pairs := func(list [][2]int64) flatbuffers.UOffsetT {
		builder.StartVector(16, len(list), 8)
		for i := len(list) - 1; i >= 0; i-- {
			builder.PrependInt64(list[i][1])
			builder.PrependInt64(list[i][0])
		}
		return builder.EndVector(len(list))
	}
	nodes, spans := pairs(b.nodes), pairs(b.spans)
	builder.StartObject(4)
	builder.PrependInt64Slot(0, int64(b.n), 0)
	builder.PrependUOffsetTSlot(1, nodes, 0)
	builder.PrependUOffsetTSlot(2, spans, 0)
	return finish(builder, headerRecordBatch, builder.EndObject(), b.size)
}

// add adds rows lo to hi of a column, and the rows of its children that they contain.
func (b *batch) add(v *tables.Vector, lo, hi int) error {
	typ := v.Type()
	if typ.Kind == tables.Null {
		b.nodes = append(b.nodes, [2]int64{int64(hi - lo), int64(hi - lo)})
		return nil
	}
	b.validity(v.Nulls(), lo, hi)
	switch typ.Kind {
	case tables.Bool:
		ints := v.Ints()
		b.buffer(bitmap(lo, hi, func(i int) bool { return ints[i] != 0 }))
	case tables.Int64, tables.Uint64:
		b.buffer(narrow(v.Ints()[lo:hi], bits(typ)))
	case tables.Timestamp, tables.Time:
		b.buffer(narrow(v.Ints()[lo:hi], 64))
	case tables.Date:
		b.buffer(narrow(v.Ints()[lo:hi], 32))
	case tables.Float64:
		b.buffer(floats(v.Floats()[lo:hi], bits(typ)))
	case tables.Huge, tables.Decimal:
		b.buffer(wide(v, lo, hi))
	case tables.String, tables.Binary:
		data, offs := v.RawRange(lo, hi)
		return b.addBytes(data, offs)
	case tables.List:
		child, offs := v.Offsets()
		if err := b.offsets(offs, lo, hi); err != nil {
			return err
		}
		return b.add(child, int(offs[lo]), int(offs[hi]))
	case tables.Struct:
		for k := range typ.Fields {
			if err := b.add(v.Field(k), lo, hi); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *batch) validity(nulls []bool, lo, hi int) {
	count := int64(0)
	if nulls != nil {
		for _, null := range nulls[lo:hi] {
			if null {
				count++
			}
		}
	}
	b.nodes = append(b.nodes, [2]int64{int64(hi - lo), count})
	if count == 0 {
		b.buffer(nil)
		return
	}
	b.buffer(bitmap(lo, hi, func(i int) bool { return !nulls[i] }))
}

func bitmap(lo, hi int, set func(i int) bool) []byte {
	out := make([]byte, (hi-lo+7)/8)
	for i := lo; i < hi; i++ {
		if set(i) {
			out[(i-lo)/8] |= 1 << ((i - lo) % 8)
		}
	}
	return out
}

// narrow returns integers in their width.
func narrow(s []int64, width int) []byte {
	if width == 64 {
		if p, ok := cast.Bytes(s); ok {
			return p
		}
	}
	out := make([]byte, 0, len(s)*width/8)
	for _, x := range s {
		switch width {
		case 8:
			out = append(out, byte(x))
		case 16:
			out = binary.LittleEndian.AppendUint16(out, uint16(x))
		case 32:
			out = binary.LittleEndian.AppendUint32(out, uint32(x))
		default:
			out = binary.LittleEndian.AppendUint64(out, uint64(x))
		}
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
		if width == 32 {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(x)))
		} else {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
		}
	}
	return out
}

// wide returns integers of 128 bits.
func wide(v *tables.Vector, lo, hi int) []byte {
	low, high := v.Ints(), v.High()
	out := make([]byte, 0, (hi-lo)*16)
	for i := lo; i < hi; i++ {
		up := low[i] >> 63
		if high != nil {
			up = high[i]
		}
		out = binary.LittleEndian.AppendUint64(out, uint64(low[i]))
		out = binary.LittleEndian.AppendUint64(out, uint64(up))
	}
	return out
}

// offsets adds the offsets lo to hi, shifted so that the first is 0.
func (b *batch) offsets(offs []uint32, lo, hi int) error {
	base := offs[lo]
	if offs[hi]-base > math.MaxInt32 {
		return fault.New(fault.Limit, "", fault.NoOffset, "over 2 GiB in %d rows", hi-lo)
	}
	part := offs[lo : hi+1]
	if base == 0 {
		if p, ok := cast.Bytes(part); ok {
			b.buffer(p)
			return nil
		}
	}
	out := make([]byte, 0, 4*len(part))
	for _, o := range part {
		out = binary.LittleEndian.AppendUint32(out, o-base)
	}
	b.buffer(out)
	return nil
}

func (b *batch) addBytes(data []byte, offs []uint32) error {
	last := len(offs) - 1
	if err := b.offsets(offs, 0, last); err != nil {
		return err
	}
	b.buffer(data[offs[0]:offs[last]])
	return nil
}
