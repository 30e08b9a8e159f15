package tables

import (
	"encoding/base64"
	"encoding/binary"
	"runtime"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"
)

// FuzzArrowSchema: no schema in Arrow's words panics, nor gives a type of another kind.
func FuzzArrowSchema(f *testing.F) {
	for _, s := range []string{
		// pyarrow.schema([("a", pa.duration("ms")), ("b", pa.list_(pa.large_string(), 3))]), as pyarrow 26 writes it.
		seedSchema,
		"", "/////wAAAAA=", "/////xAAAAAIAAAAAAAAAAAAAAAAAAAA",
	} {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	elem := Type{Kind: String}
	cols := []Type{{Kind: Int64, Bits: 64}, {Kind: List, Elem: &elem}}
	f.Fuzz(func(t *testing.T, b []byte) {
		fields := arrowFields(base64.StdEncoding.EncodeToString(b), len(cols))
		for i := range fields {
			typ := cols[i].inArrow(&fields[i])
			if typ.Kind != cols[i].Kind || typ.Plain().Kind != cols[i].Kind || typ.ArrowName() == "" {
				t.Fatalf("%v became %v", cols[i], typ)
			}
		}
	})
}

// TestSchemaOfPyarrow: forms are those that pyarrow named.
func TestSchemaOfPyarrow(t *testing.T) {
	fields := arrowFields(seedSchema, 2)
	if fields == nil {
		t.Fatal("not read")
	}
	elem := Type{Kind: String}
	for i, want := range []string{"duration[ms]", "fixed_size_list<element: large_string>[3]"} {
		plain := []Type{{Kind: Int64, Bits: 64}, {Kind: List, Elem: &elem}}[i]
		if got := plain.inArrow(&fields[i]).ArrowName(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if arrowFields(seedSchema, 3) != nil {
		t.Error("a schema of two columns describes three")
	}
}

const seedSchema = "" +
	"/////8gAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAIAAABwAAAABAAAAKj///" +
	"8AAAEQFAAAABwAAAAEAAAAAQAAABgAAAABAAAAYgAGAAgABAAGAAAAAwAAANj///8AAAEUEAAAABgAAAAEAAAAAAAA" +
	"AAQAAABpdGVtAAAAAMz///8QABQACAAGAAcADAAAABAAEAAAAAAAARIQAAAAGAAAAAQAAAAAAAAAAQAAAGEAAAAEAA" +
	"QABAAAAA=="

// arrowOfZones writes a schema of timestamps whose fields refer to one text, the name of their zone.
func arrowOfZones(fields, length int) string {
	b := flatbuffers.NewBuilder(1 << 16)
	zone := b.CreateByteString(make([]byte, length))
	var offsets []flatbuffers.UOffsetT
	for range fields {
		b.StartObject(2) // Timestamp
		b.PrependUOffsetTSlot(1, zone, 0)
		typ := b.EndObject()
		b.StartObject(7) // Field
		b.PrependByteSlot(2, arrowTimestamp, 0)
		b.PrependUOffsetTSlot(3, typ, 0)
		offsets = append(offsets, b.EndObject())
	}
	b.StartVector(4, fields, 4)
	for _, off := range offsets {
		b.PrependUOffsetT(off)
	}
	vector := b.EndVector(fields)
	b.StartObject(4) // Schema
	b.PrependUOffsetTSlot(1, vector, 0)
	schema := b.EndObject()
	b.StartObject(5) // Message
	b.PrependUOffsetTSlot(2, schema, 0)
	b.Finish(b.EndObject())
	head := binary.LittleEndian.AppendUint32([]byte{255, 255, 255, 255}, uint32(len(b.FinishedBytes())))
	return base64.StdEncoding.EncodeToString(append(head, b.FinishedBytes()...))
}

// TestSharedTexts: fields that share a short text are read. Fields that share a long one would take its length for each
// of them.
func TestSharedTexts(t *testing.T) {
	if fields := arrowFields(arrowOfZones(1000, 16), 1000); fields == nil || len(fields[999].zone) != 16 {
		t.Error("1000 fields of a short zone are not read")
	}
	const fields, length = 1000, 1 << 20
	encoded := arrowOfZones(fields, length)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := arrowFields(encoded, fields)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; got != nil || took > 8*length {
		t.Errorf("%d fields are read from a schema of %d bytes in %d bytes", len(got), len(encoded), took)
	}
}
