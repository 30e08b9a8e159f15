package arrow_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/arrow"
)

// frame is a message of a stream (Arrow columnar format, "Encapsulated message format"): the root table of its
// metadata, and its body.
type frame struct {
	root flatbuffers.Table
	body []byte
}

// field returns where field i of a table lies, 0 if the table has none.
func field(t *flatbuffers.Table, i int) flatbuffers.UOffsetT {
	at := t.Offset(flatbuffers.VOffsetT(4 + 2*i))
	if at == 0 {
		return 0
	}
	return t.Pos + flatbuffers.UOffsetT(at)
}

// frames divides a stream into its messages.
func frames(t *testing.T, b []byte) (list []frame) {
	t.Helper()
	for {
		if len(b) < 8 || binary.LittleEndian.Uint32(b) != math.MaxUint32 || len(b)%8 != 0 {
			t.Fatalf("no message in the last %d bytes", len(b))
		}
		size := int(binary.LittleEndian.Uint32(b[4:]))
		if size == 0 {
			if len(b) != 8 {
				t.Fatalf("%d bytes after the end", len(b)-8)
			}
			return list
		}
		metadata := b[8:][:size]
		root := flatbuffers.Table{Bytes: metadata, Pos: flatbuffers.GetUOffsetT(metadata)}
		length := 0
		if at := field(&root, 3); at != 0 {
			length = int(root.GetInt64(at))
		}
		list = append(list, frame{root, b[8+size:][:length]})
		b = b[8+size+length:]
	}
}

// TestStream: a stream is a schema, batches whose rows are those of the table in order, and an end. Buffers lie in the
// body at multiples of 8 bytes, and hold the values and the bits of those that are not null.
func TestStream(t *testing.T) {
	const rows = 131_072 + 1000 // two batches
	values, null, nulls := make([]int64, rows), make([]bool, rows), 0
	for i := range values {
		if values[i], null[i] = int64(i)*7919-3, i%5 == 2; null[i] {
			values[i] = 0
			nulls++
		}
	}
	table := tables.FromVectors([]string{"x"},
		[]*tables.Vector{tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, values, null)})
	var stream bytes.Buffer
	if err := arrow.Write(t.Context(), &stream, table); err != nil {
		t.Fatal(err)
	}
	const schema, batch = 1, 3 // of MessageHeader, format/Message.fbs
	row := 0
	for i, m := range frames(t, stream.Bytes()) {
		kind := m.root.GetByte(field(&m.root, 1))
		if (i == 0) != (kind == schema) || i > 0 && kind != batch {
			t.Fatalf("message %d is of kind %d", i, kind)
		}
		if kind == schema {
			continue
		}
		var header flatbuffers.Table
		m.root.Union(&header, field(&m.root, 2)-m.root.Pos)
		n := int(header.GetInt64(field(&header, 0)))
		at := header.Vector(field(&header, 2) - header.Pos)
		if count := header.VectorLen(field(&header, 2) - header.Pos); count != 2 {
			t.Fatalf("batch %d has %d buffers", i, count)
		}
		buffer := func(k int) []byte {
			place := at + flatbuffers.UOffsetT(16*k)
			offset, size := header.GetInt64(place), header.GetInt64(place+8)
			if offset%8 != 0 {
				t.Fatalf("a buffer at %d", offset)
			}
			return m.body[offset:][:size]
		}
		valid, data := buffer(0), buffer(1)
		for k := range n {
			is := valid[k/8]>>(k%8)&1 == 1
			if is == null[row] || is && int64(binary.LittleEndian.Uint64(data[8*k:])) != values[row] {
				t.Fatalf("row %d: valid %v, want null %v", row, is, null[row])
			}
			row++
		}
	}
	if row != rows || nulls == 0 {
		t.Errorf("%d rows of %d", row, rows)
	}
}
