package tables

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"

	"github.com/chaski-eo/chaski/format/column"
)

// TestConcatWithStrings promises that values joined with strings become what DuckDB 1.5 makes of them in SELECT x FROM
// a UNION ALL SELECT x FROM b.
func TestConcatWithStrings(t *testing.T) {
	const noon = 1577934245 * 1e6 // 2020-01-02 03:04:05
	ints := func(k Kind, bits uint8, v ...int64) *Vector { return NewInts(Type{Kind: k, Bits: bits}, v, nil) }
	for name, x := range map[string]struct {
		v    *Vector
		want []string
	}{
		"int": {NewInts(Type{Kind: Int64, Bits: 64}, []int64{1, -5, 0, 1 << 62},
			[]bool{false, false, true, false}), []string{"1", "-5", "null", "4611686018427387904"}},
		"uint": {ints(Uint64, 64, -1), []string{"18446744073709551615"}},
		"bool": {ints(Bool, 0, 1, 0), []string{"true", "false"}},
		"float": {NewFloats(Type{Kind: Float64, Bits: 64}, []float64{1, 0.1, 1e20, math.NaN(), 1e15, 1e16, 1e17,
			123456789012345680, 1e-5, 0.0001, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), 1.5e300}, nil),
			[]string{"1.0", "0.1", "1e+20", "nan", "1000000000000000.0", "1e+16", "1e+17", "1.2345678901234568e+17",
				"1e-05", "0.0001", "-0.0", "inf", "-inf", "1.5e+300"}},
		"float32": {NewFloats(Type{Kind: Float64, Bits: 32}, []float64{float64(float32(0.1)), 1e10, 3, 16777216},
			nil), []string{"0.1", "10000000000.0", "3.0", "16777216.0"}},
		"timestamp": {ints(Timestamp, 0, noon, noon-3*3600e6-4*60e6-5e6, noon+678, noon+500000),
			[]string{"2020-01-02 03:04:05", "2020-01-02 00:00:00", "2020-01-02 03:04:05.000678",
				"2020-01-02 03:04:05.5"}},
		"timestamp in UTC": {NewInts(Type{Kind: Timestamp, UTC: true}, []int64{noon}, nil),
			[]string{"2020-01-02 03:04:05+00"}},
		"date": {ints(Date, 0, 18263), []string{"2020-01-02"}},
		"time": {ints(Time, 0, 3723000004), []string{"01:02:03.000004"}},
		"decimal": {NewWide(Type{Kind: Decimal, Precision: 5, Scale: 2}, []int64{120}, []int64{0},
			nil), []string{"1.20"}},
	} {
		a, b := FromVectors([]string{"x"}, []*Vector{x.v}),
			FromVectors([]string{"x"}, []*Vector{NewStrings([]string{"t", ""}, nil)})
		for _, swapped := range []bool{false, true} {
			tables, want := []*Table{a, b}, append(slices.Clone(x.want), "t", "")
			if swapped {
				tables, want = []*Table{b, a}, append([]string{"t", ""}, x.want...)
			}
			got, err := Concat(tables, column.Intersection)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			v, err := got.At(t.Context(), 0)
			if err != nil || v.Kind() != String {
				t.Fatal(name, v, err)
			}
			for i, w := range want {
				if s := v.Str(i); s != w && !(w == "null" && v.Null(i)) {
					t.Errorf("%s: %q, want %q", name, s, w)
				}
			}
			if messages := JoinedAsStrings(got, tables, []string{"one", "two"}); len(messages) != 1 ||
				!strings.Contains(messages[0], `"x" is joined as strings: it is `+x.v.Type().String()) {
				t.Errorf("%s: %q", name, messages)
			}
			if _, err := Concat(tables, column.Strict); fault.KindOf(err) != fault.Unsupported ||
				!strings.Contains(err.Error(), "x") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	mixed, err := Concat([]*Table{FromVectors([]string{"x"}, []*Vector{ints(Bool, 0, 1, 0)}),
		FromVectors([]string{"x"}, []*Vector{ints(Int64, 64, 7)})}, column.Strict)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := mixed.At(t.Context(), 0); err != nil || v.Kind() != Int64 ||
		!slices.Equal(v.Ints(), []int64{1, 0, 7}) {
		t.Errorf("bools and integers: %v, %v", v, err)
	}
}

// TestStringsAndNulls promises that a column without any value, which writers store without a type, joins strings in
// any mode and without a message, wherever its table is.
func TestStringsAndNulls(t *testing.T) {
	a := FromVectors([]string{"x"}, []*Vector{NewStrings([]string{"a"}, nil)})
	b := FromVectors([]string{"x"}, []*Vector{NewNulls(Type{}, 2)})
	for _, tables := range [][]*Table{{a, b}, {b, a}, {a, b, a}, {b, a, b}} {
		for _, mode := range []column.Mode{column.Intersection, column.FillMissing, column.Strict, column.Mixed} {
			joined, err := Concat(tables, mode)
			if err != nil {
				t.Errorf("mode %d: %v", mode, err)
				continue
			}
			if messages := JoinedAsStrings(joined, tables, make([]string, len(tables))); len(messages) > 0 {
				t.Errorf("mode %d: %q", mode, messages)
			}
			v, err := joined.At(t.Context(), 0)
			if err != nil || v.Kind() != String {
				t.Fatal(v, err)
			}
			row := 0
			for _, part := range tables {
				for range part.Len() {
					if v.Null(row) != (part == b) || part == a && v.Str(row) != "a" {
						t.Errorf("mode %d: row %d is %q", mode, row, v.Str(row))
					}
					row++
				}
			}
		}
	}
}

// TestListsOfStrings promises that elements of lists are joined with strings as values are.
func TestListsOfStrings(t *testing.T) {
	one := func(elems *Vector) *Table {
		return FromVectors([]string{"x"}, []*Vector{NewList(elems, []uint32{0, uint32(elems.Len())}, nil)})
	}
	strs, ints, none := one(NewStrings([]string{"a"}, nil)),
		one(NewInts(Type{Kind: Int64, Bits: 64}, []int64{1, 2}, nil)), one(NewNulls(Type{}, 1))
	joined, err := Concat([]*Table{strs, none, ints}, column.Intersection)
	if err != nil {
		t.Fatal(err)
	}
	if messages := JoinedAsStrings(joined, []*Table{strs, none, ints}, []string{"a", "b", "c"}); len(messages) != 1 ||
		!strings.HasSuffix(messages[0], "list<int64> in c") {
		t.Errorf("messages %q", messages)
	}
	v, err := joined.At(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`["a"]`, `[null]`, `["1","2"]`} {
		if got := string(v.AppendJSON(nil, i)); got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
	if _, err := Concat([]*Table{strs, ints}, column.Strict); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("strict: %v", err)
	}
	mixed, err := Concat([]*Table{strs, ints}, column.Mixed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mixed.At(t.Context(), 0); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("mixed: %v", err)
	}
	for _, mode := range []column.Mode{column.Strict, column.Mixed} {
		joined, err := Concat([]*Table{strs, none}, mode)
		if err == nil {
			_, err = joined.At(t.Context(), 0)
		}
		if err != nil {
			t.Errorf("mode %d, with empty ones: %v", mode, err)
		}
	}
}
