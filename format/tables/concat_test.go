package tables

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestConcatAnyTypes promises that columns of any two types, nested as they like, are joined or refused in both orders,
// and that joined values are those of their tables.
func TestConcatAnyTypes(t *testing.T) {
	race.SkipCovered(t)
	r := rand.New(rand.NewPCG(1, 2))
	joined := 0
	for range 20_000 {
		a := FromVectors([]string{"x"}, []*Vector{anyVector(r, 3)})
		b := FromVectors([]string{"x"}, []*Vector{anyVector(r, 3)})
		types := fmt.Sprint(a.Columns()[0].Type.ArrowName(), " and ", b.Columns()[0].Type.ArrowName())
		both, err := Concat([]*Table{a, b}, column.Strict)
		other, again := Concat([]*Table{b, a}, column.Strict)
		if (err == nil) != (again == nil) {
			t.Fatalf("%s: %v, in the other order %v", types, err, again)
		}
		if err != nil {
			if fault.KindOf(err) != fault.Unsupported {
				t.Fatalf("%s: %v", types, err)
			}
			continue
		}
		joined++
		if got, want := other.Columns()[0].Type.ArrowName(), both.Columns()[0].Type.ArrowName(); got != want {
			t.Fatalf("%s: joined as %s, in the other order as %s", types, want, got)
		}
		for i := range both.Len() {
			want, row := a, i
			if i >= a.Len() {
				want, row = b, i-a.Len()
			}
			if show(t, both, i) != show(t, want, row) {
				t.Fatalf("%s: row %d of the joined table is %s, not %s", types, i, show(t, both, i), show(t, want, row))
			}
		}
	}
	if joined < 1000 {
		t.Errorf("only %d pairs were joined", joined)
	}
}

// show returns a value of the only column as JSON, and instants in UTC as those of an unknown zone: joined with such
// ones, they are no longer said to be in UTC.
func show(t *testing.T, tab *Table, row int) string {
	t.Helper()
	v, err := tab.At(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(v.AppendJSON(nil, row)), "+00:00", "")
}

// anyVector returns up to three random values of a random type, whose lists and structs are depth levels deep at most.
func anyVector(r *rand.Rand, depth int) *Vector {
	return vectorOf(r, r.IntN(4), depth)
}

// vectorOf returns n random values.
func vectorOf(r *rand.Rand, n, depth int) *Vector {
	nulls := make([]bool, n)
	numbers := make([]int64, n)
	floats := make([]float64, n)
	for i := range n {
		nulls[i], numbers[i], floats[i] = r.IntN(4) == 0, r.Int64N(100), float64(r.IntN(100))
	}
	kinds := 7
	if depth > 0 {
		kinds = 9
	}
	switch r.IntN(kinds) {
	case 0:
		return NewNulls(Type{}, n)
	case 1:
		typ := Type{Kind: Int64, Bits: 8 << r.IntN(4)}
		if r.IntN(2) == 0 {
			typ = Type{Kind: Int64, Bits: 64}.With(func(f *Form) { f.Store, f.Unit = Duration, uint8(3*r.IntN(4)) })
		}
		return NewInts(typ, numbers, nulls)
	case 2:
		return NewInts(Type{Kind: Uint64, Bits: 8 << r.IntN(4)}, numbers, nulls)
	case 3:
		return NewFloats(Type{Kind: Float64, Bits: 32 << r.IntN(2)}, floats, nulls)
	case 4:
		typ := Type{Kind: Timestamp, UTC: r.IntN(2) == 0, Nano: r.IntN(2) == 0}
		if typ.Nano {
			return NewWide(typ, numbers, numbers, nulls)
		}
		return NewInts(typ, numbers, nulls)
	case 5:
		words, offsets := []byte("abc"), make([]uint32, n+1)
		for i := range n {
			offsets[i+1] = min(offsets[i]+uint32(r.IntN(2)), 3)
		}
		typ := Type{Kind: []Kind{String, Binary}[r.IntN(2)]}
		if r.IntN(2) == 0 {
			typ = typ.With(func(f *Form) { f.Store = []Store{LargeText, TextView}[r.IntN(2)] })
		}
		return NewBytes(typ, words[:offsets[n]], offsets, nulls)
	case 6:
		return NewInts(Type{Kind: Date}, numbers, nulls)
	case 7:
		offsets := make([]uint32, n+1)
		for i := range n {
			offsets[i+1] = offsets[i] + uint32(r.IntN(3))
		}
		v := NewList(vectorOf(r, int(offsets[n]), depth-1), offsets, nulls)
		if r.IntN(2) == 0 {
			v.typ = v.typ.With(func(f *Form) { f.Store = []Store{LargeList, ListView}[r.IntN(2)] })
		}
		return v
	}
	var names []string
	var fields []*Vector
	for k := range 1 + r.IntN(3) {
		names, fields = append(names, fmt.Sprint("f", k)), append(fields, vectorOf(r, n, depth-1))
	}
	return NewStruct(names, fields, nulls)
}
