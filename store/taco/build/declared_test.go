package build

import (
	"math"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/tables"
)

// TestDeclaredColumns: a column has the declared type and description, lower levels too, and the order of columns
// stays.
func TestDeclaredColumns(t *testing.T) {
	c, err := described(t, "columns: {a: Name, 'l1:b': {type: int16}, c: {type: float32, description: Share}}")
	if err != nil {
		t.Fatal(err)
	}
	levels := []*tables.Table{
		tables.FromVectors([]string{"c", "a"}, []*tables.Vector{
			tables.NewInts(tables.Ints, []int64{1, 0}, []bool{false, true}),
			tables.NewStrings([]string{"x", "y"}, nil)}),
		tables.FromVectors([]string{"b"}, []*tables.Vector{tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64},
			[]float64{-32768}, nil)}),
	}
	if err := typed(t.Context(), c.Columns, levels); err != nil {
		t.Fatal(err)
	}
	if got := tables.Names(levels[0].Columns()); !strings.Contains(got, "c") || levels[0].Columns()[1].Name != "a" ||
		levels[0].Columns()[0].Type.String() != "float32" || levels[1].Columns()[0].Type.String() != "int16" {
		t.Errorf("%v %v", levels[0].Columns(), levels[1].Columns())
	}
	v, err := levels[0].At(t.Context(), 0)
	if err != nil || v.Float(0) != 1 || !v.Null(1) {
		t.Errorf("%v %v", v, err)
	}
	if c.descriptionOf(0, "c") != "Share" || c.descriptionOf(0, "a") != "Name" || c.descriptionOf(1, "a") != "" {
		t.Error("descriptions")
	}
	if _, there := c.More[columnsMember]; there {
		t.Error("columns is a member of COLLECTION.json")
	}
	for doc, want := range map[string]string{
		"columns: {a: {kind: text}}":  "columns.a is",
		"columns: {a: {type: text}}":  `columns.a.type is "text": it must be one of bool, float32`,
		"columns: 3":                  "columns is 3: it must be an object",
		"columns: {a: [x]}":           "columns.a is",
		"columns: {none: Not there}":  `columns has "none", and the samples have c, a, l1:b`,
		"columns: {a: {type: int64}}": "row 0 is \"x\", which is no int64",
	} {
		d, err := described(t, doc)
		if err == nil {
			err = typed(t.Context(), d.Columns, levels)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", doc, err, want)
		}
	}
}

// TestCast: values become another type only if it can have them.
func TestCast(t *testing.T) {
	float64s := tables.Type{Kind: tables.Float64, Bits: 64}
	text := func(s string) *tables.Vector { return tables.NewStrings([]string{s}, nil) }
	whole := func(x int64) *tables.Vector { return tables.NewInts(tables.Ints, []int64{x}, nil) }
	number := func(f float64) *tables.Vector { return tables.NewFloats(float64s, []float64{f}, nil) }
	natural := func(x uint64, bits uint8) *tables.Vector {
		return tables.NewInts(tables.Type{Kind: tables.Uint64, Bits: bits}, []int64{int64(x)}, nil)
	}
	day := tables.NewInts(tables.Type{Kind: tables.Date}, []int64{1}, nil)
	for _, c := range []struct {
		v    *tables.Vector
		to   string
		want any // nil: it is refused
	}{
		{whole(7), "string", "7"}, {number(0.5), "string", "0.5"}, {day, "string", "1970-01-02"},
		{whole(127), "int8", int64(127)}, {whole(128), "int8", nil}, {whole(-129), "int8", nil},
		{number(3), "int32", int64(3)}, {number(3.5), "int32", nil}, {number(math.NaN()), "int64", nil},
		{number(math.Inf(1)), "int64", nil}, {number(1 << 63), "int64", nil}, {text(" 12 "), "int16", int64(12)},
		{text("x"), "float64", nil}, {text("1e3"), "float64", 1000.0}, {whole(2), "float32", 2.0},
		{whole(1), "bool", int64(1)}, {whole(2), "bool", nil}, {text("false"), "bool", int64(0)},
		{day, "timestamp", int64(86_400_000_000)}, {text("1970-01-01T00:00:01Z"), "timestamp", int64(1_000_000)},
		{text("soon"), "timestamp", nil}, {number(1), "timestamp", nil}, {day, "int64", nil},
		{natural(200, 8), "int16", int64(200)}, {natural(200, 8), "int8", nil}, {natural(200, 8), "float32", 200.0},
		{natural(math.MaxUint64, 64), "int64", nil}, {natural(1<<63, 64), "float64", float64(1 << 63)},
		{natural(math.MaxUint64, 64), "string", "18446744073709551615"}, {natural(1, 8), "bool", int64(1)},
		{number(1e300), "float32", nil}, {number(math.Inf(-1)), "float32", math.Inf(-1)},
	} {
		v, err := Cast(c.v, declaredTypes[c.to])
		var got any
		switch {
		case err != nil:
		case v.Kind() == tables.String:
			got = v.Str(0)
		case v.Kind() == tables.Float64:
			got = v.Float(0)
		default:
			got = v.Int(0)
		}
		if got != c.want {
			t.Errorf("%s as %s: %v, %v, want %v", c.v.AppendJSON(nil, 0), c.to, got, err, c.want)
		}
	}
}
