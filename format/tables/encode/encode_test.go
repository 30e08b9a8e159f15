package encode_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/encode"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// memory is an object in memory.
type memory []byte

func (m memory) Size() int64  { return int64(len(m)) }
func (m memory) Close() error { return nil }
func (m memory) ReadAt(_ context.Context, p []byte, off int64) error {
	copy(p, m[off:])
	return nil
}

func read(t testing.TB, b []byte) *tables.Table {
	t.Helper()
	tab, err := tables.Read(t.Context(), memory(b), 0, int64(len(b)), tables.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// same compares two tables by their columns and by the JSON of their values, which tells nulls from zeros and NaN from
// null.
func same(t testing.TB, got, want *tables.Table, typeOf func(tables.Type) tables.Type) {
	t.Helper()
	if got.Len() != want.Len() || len(got.Columns()) != len(want.Columns()) {
		t.Fatalf("%d rows of %d columns, want %d of %d", got.Len(), len(got.Columns()), want.Len(), len(want.Columns()))
	}
	for k, c := range want.Columns() {
		g := got.Columns()[k]
		if g.Name != c.Name || !g.Type.Equal(typeOf(c.Type)) || g.Type.Nano != c.Type.Nano {
			t.Fatalf("column %d is %q %v, want %q %v", k, g.Name, g.Type, c.Name, c.Type)
		}
		a, err := got.At(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		b, err := want.At(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Len() {
			x, y := a.AppendJSON(nil, i), b.AppendJSON(nil, i)
			if !bytes.Equal(x, y) || a.Null(i) != b.Null(i) {
				t.Fatalf("column %q (%v) row %d: %s, want %s", c.Name, c.Type, i, x, y)
			}
		}
	}
}

func asIs(t tables.Type) tables.Type { return t }

// TestFilesOfOthersAreTheSameAfterwards: files that pyarrow and others wrote have the same columns in the same order,
// and the same values, after they were read and written.
func TestFilesOfOthersAreTheSameAfterwards(t *testing.T) {
	names, err := filepath.Glob("../testdata/*.parquet")
	if err != nil || len(names) < 3 {
		t.Fatalf("%v %v", names, err)
	}
	more, err := filepath.Glob("../../../store/catalog/testdata/*.parquet")
	if err != nil || len(more) < 6 {
		t.Fatalf("%v %v", more, err)
	}
	for _, name := range append(names, more...) {
		b := testfile.Read(t, name)
		want := read(t, b)
		var out bytes.Buffer
		if err := encode.Table(t.Context(), &out, want); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		same(t, read(t, out.Bytes()), want, asIs)
	}
}

// anyType draws a type that a table can have.
func anyType(r *rapid.T, depth int) tables.Type {
	kinds := []tables.Kind{tables.Null, tables.Bool, tables.Int64, tables.Uint64, tables.Decimal, tables.Float64,
		tables.String, tables.Binary, tables.Timestamp, tables.Date, tables.Time}
	if depth < 2 {
		kinds = append(kinds, tables.List, tables.Struct)
	}
	ty := tables.Type{Kind: rapid.SampledFrom(kinds).Draw(r, "kind")}
	switch ty.Kind {
	case tables.Int64, tables.Uint64:
		ty.Bits = rapid.SampledFrom([]uint8{8, 16, 32, 64}).Draw(r, "bits")
	case tables.Float64:
		ty.Bits = rapid.SampledFrom([]uint8{32, 64}).Draw(r, "bits")
	case tables.Decimal:
		ty.Precision, ty.Scale = 38, 10
	case tables.Timestamp:
		ty.UTC, ty.Nano = rapid.Bool().Draw(r, "utc"), depth == 0 && rapid.Bool().Draw(r, "nano")
	case tables.List:
		elem := anyType(r, depth+1)
		ty.Elem = &elem
	case tables.Struct:
		for i := range rapid.IntRange(1, 3).Draw(r, "fields") {
			ty.Fields = append(ty.Fields, tables.Column{Name: fmt.Sprint("f", 9-i), Type: anyType(r, depth+1)})
		}
	}
	return ty
}

// anyVector draws n values of a type.
func anyVector(r *rapid.T, ty tables.Type, n int) *tables.Vector {
	if ty.Kind == tables.Null {
		return tables.NewNulls(ty, n)
	}
	nulls := rapid.SliceOfN(rapid.Bool(), n, n).Draw(r, "nulls")
	ints := make([]int64, n)
	for i := range ints {
		x := rapid.Int64().Draw(r, "int")
		switch {
		case ty.Kind == tables.Bool:
			x &= 1
		case ty.Kind == tables.Int64 && ty.Bits < 64:
			x = x << (64 - ty.Bits) >> (64 - ty.Bits)
		case ty.Kind == tables.Uint64 && ty.Bits < 64:
			x = int64(uint64(x) << (64 - ty.Bits) >> (64 - ty.Bits))
		case ty.Kind == tables.Date:
			x = int64(int16(x))
		case ty.Kind == tables.Time:
			x &= 1<<36 - 1
		case ty.Kind == tables.Timestamp:
			x >>= 14
		}
		ints[i] = x
	}
	switch ty.Kind {
	case tables.Float64:
		floats := make([]float64, n)
		for i := range floats {
			floats[i] = rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), 1.5, -3e38}).
				Draw(r, "float")
			if ty.Bits == 32 {
				floats[i] = float64(float32(floats[i]))
			}
		}
		return tables.NewFloats(ty, floats, nulls)
	case tables.Decimal:
		high := make([]int64, n)
		for i := range high {
			high[i] = ints[i] >> 63 // 38 digits hold all 64-bit numbers
		}
		return tables.NewWide(ty, ints, high, nulls)
	case tables.String, tables.Binary:
		var data []byte
		offs := []uint32{0}
		for range n {
			data = append(data, rapid.SampledFrom([]string{"", "a", "ñandú", "nul\x00"}).Draw(r, "text")...)
			offs = append(offs, uint32(len(data)))
		}
		return tables.NewBytes(ty, data, offs, nulls)
	case tables.List:
		offs := []uint32{0}
		for i := range n {
			more := uint32(0)
			if !nulls[i] {
				more = rapid.Uint32Range(0, 3).Draw(r, "elements")
			}
			offs = append(offs, offs[i]+more)
		}
		return tables.NewList(anyVector(r, *ty.Elem, int(offs[n])), offs, nulls)
	case tables.Struct:
		names, fields := []string{}, []*tables.Vector{}
		for _, f := range ty.Fields {
			names, fields = append(names, f.Name), append(fields, anyVector(r, f.Type, n))
		}
		return tables.NewStruct(names, fields, nulls)
	case tables.Timestamp:
		if ty.Nano {
			after := make([]int64, n)
			for i := range after {
				after[i] = rapid.Int64Range(0, 999).Draw(r, "nanoseconds")
			}
			return tables.NewWide(ty, ints, after, nulls)
		}
	}
	return tables.NewInts(ty, ints, nulls)
}

// TestAnyTableIsReadBack: tables of any types, nested ones too, are read back as they were. The reader is package
// format/tables/parquet, which shares no code with the writer's library.
func TestAnyTableIsReadBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(r, "rows")
		var names []string
		var vectors []*tables.Vector
		for i := range rapid.IntRange(1, 4).Draw(r, "columns") {
			names = append(names, fmt.Sprint("internal:z", 9-i))
			vectors = append(vectors, anyVector(r, anyType(r, 0), n))
		}
		want := tables.FromVectors(names, vectors)
		var out bytes.Buffer
		if err := encode.Table(t.Context(), &out, want); err != nil {
			t.Fatal(err)
		}
		same(t, read(t, out.Bytes()), want, asIs)
	})
}

// TestAWriterWritesManyTables: a writer that is used again leaves nothing of the table before, nor of one that it
// refused.
func TestAWriterWritesManyTables(t *testing.T) {
	table := func(s ...string) *tables.Table {
		return tables.FromVectors([]string{"a"}, []*tables.Vector{tables.NewStrings(s, nil)})
	}
	w, err := encode.NewWriter(table().Columns(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for i := range 3 {
		var out bytes.Buffer
		if err := w.Write(t.Context(), &out, table("x", "y")); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = out.Bytes()
		} else if !bytes.Equal(out.Bytes(), first) {
			t.Fatal("the same table is written differently the second time")
		}
		same(t, read(t, out.Bytes()), table("x", "y"), asIs)
		other := tables.FromVectors([]string{"b"}, []*tables.Vector{tables.NewStrings([]string{"x"}, nil)})
		if err := w.Write(t.Context(), &out, other); fault.KindOf(err) != fault.Unsupported {
			t.Fatalf("a table of other columns: %v", err)
		}
	}
}

// TestManyRowsAreWritten: more rows than one row group has.
func TestManyRowsAreWritten(t *testing.T) {
	n := 300_000
	if testing.Short() {
		n = 140_000
	}
	ints := make([]int64, n)
	for i := range ints {
		ints[i] = int64(i) * 7
	}
	want := tables.FromVectors([]string{"i"}, []*tables.Vector{
		tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, ints, nil)})
	var out bytes.Buffer
	if err := encode.Table(t.Context(), &out, want); err != nil {
		t.Fatal(err)
	}
	same(t, read(t, out.Bytes()), want, asIs)
}

// BenchmarkSmallTables writes tables of three rows and eight columns, as a container has one for each folder.
func BenchmarkSmallTables(b *testing.B) {
	var names []string
	var vectors []*tables.Vector
	for i := range 8 {
		names = append(names, fmt.Sprint("c", i))
		vectors = append(vectors, tables.NewStrings([]string{"a", "b", "c"}, nil))
	}
	t := tables.FromVectors(names, vectors)
	w, err := encode.NewWriter(t.Columns(), nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := w.Write(b.Context(), io.Discard, t); err != nil {
			b.Fatal(err)
		}
	}
}
