package query

import (
	"io"
	"testing"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/arrow"
)

// TestUnionOfForms: a UNION of columns in other forms of Arrow has the type of SQL, which holds the values of both.
func TestUnionOfForms(t *testing.T) {
	ints, seconds := tables.Type{Kind: tables.Int64, Bits: 64}, tables.Type{Kind: tables.Time}
	numbers := tables.NewInts(ints, []int64{1, 2, 3}, nil)
	with := func(typ tables.Type, form tables.Form) tables.Type {
		typ.Form = &form
		return typ
	}
	list := tables.Type{Kind: tables.List, Elem: &ints}
	cols := []tables.Column{
		{Name: "ms", Type: with(ints, tables.Form{Store: tables.Duration, Unit: 3})},
		{Name: "ns", Type: with(ints, tables.Form{Store: tables.Duration, Unit: 9})},
		{Name: "s", Type: with(seconds, tables.Form{Store: tables.Seconds, Unit: 3})},
		{Name: "us", Type: seconds},
		{Name: "pairs", Type: with(list, tables.Form{Store: tables.FixedList, Size: 1})},
		{Name: "lists", Type: list},
	}
	names := make([]string, len(cols))
	for i := range cols {
		names[i] = cols[i].Name
	}
	data := tables.FromVectors(names, []*tables.Vector{numbers, numbers,
		tables.NewInts(seconds, []int64{0, 1_000_000, 2_000_000}, nil), tables.NewInts(seconds, []int64{1, 2, 3}, nil),
		tables.NewList(numbers, []uint32{0, 1, 2, 3}, nil), tables.NewList(numbers, []uint32{0, 0, 2, 3}, nil),
	}).Retype(func(i int, _ tables.Column) tables.Type { return cols[i].Type })
	for columns, want := range map[[2]string]string{
		{"ms", "ms"}: "duration[ms]", {"ms", "ns"}: "int64", {"ns", "ms"}: "int64",
		{"s", "us"}: "time64[us]", {"us", "s"}: "time64[us]", {"pairs", "lists"}: "list<element: int64>",
		{"NULL", "ms"}: "duration[ms]",
	} {
		out, err := Run(t.Context(), "SELECT "+columns[0]+" AS x FROM data UNION ALL SELECT "+columns[1]+" FROM data",
			Map(map[string]*tables.Table{"data": data}))
		if err == nil {
			err = arrow.Write(t.Context(), io.Discard, out)
		}
		if err != nil {
			t.Errorf("%v: %v", columns, err)
		} else if got := out.Columns()[0].Type.ArrowName(); got != want {
			t.Errorf("%v: %s, want %s", columns, got, want)
		}
	}
}
