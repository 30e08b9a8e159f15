package tables

import (
	"encoding/base64"
	"testing"
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
