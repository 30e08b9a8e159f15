package tables

import (
	"bytes"
	"testing"
	"time"

	pqgo "github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/format/column"
)

// TestNanoseconds promises that timestamps with nanoseconds keep them through selections and joins, and that others are
// in microseconds.
func TestNanoseconds(t *testing.T) {
	type row struct {
		T time.Time  `parquet:"t,timestamp(nanosecond)"`
		N *time.Time `parquet:"n,optional,timestamp(nanosecond)"`
		U time.Time  `parquet:"u,timestamp(microsecond)"`
		L []int64    `parquet:"l,list"`
	}
	at := time.Date(2020, 1, 2, 3, 4, 5, 123456789, time.UTC)
	times := []time.Time{at, at.Add(-789), time.Unix(0, -1).UTC(), time.Unix(0, 0).UTC(),
		time.Date(1700, 1, 1, 0, 0, 0, 1, time.UTC)}
	var rows []row
	for i, x := range times {
		r := row{T: x, U: x}
		if i != 1 {
			r.N = &times[i]
		}
		rows = append(rows, r)
	}
	var b bytes.Buffer
	if err := pqgo.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	read := func() *Table {
		tab, err := Read(t.Context(), memory(b.Bytes()), 0, int64(b.Len()), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return tab
	}
	check := func(what string, tab *Table, column string, want []*time.Time) {
		t.Helper()
		v, err := tab.Column(t.Context(), column)
		if err != nil {
			t.Fatal(err)
		}
		nanos := v.Nanos()
		for i, w := range want {
			if w == nil {
				if !v.Null(i) {
					t.Errorf("%s: row %d is no null", what, i)
				}
				continue
			}
			n := int64(0)
			if nanos != nil {
				n = nanos[i]
			}
			if got := time.UnixMicro(v.Int(i)).Add(time.Duration(n)); !got.Equal(*w) || n < 0 || n > 999 {
				t.Errorf("%s: row %d is %v, want %v", what, i, got, *w)
			}
		}
	}
	var all, some, cut []*time.Time
	for i := range times {
		c := times[i].Truncate(time.Microsecond)
		if c.After(times[i]) {
			c = c.Add(-time.Microsecond)
		}
		all, some, cut = append(all, &times[i]), append(some, rows[i].N), append(cut, &c)
	}
	tab := read()
	for i, want := range []bool{true, true, false} {
		if tab.Columns()[i].Type.Nano != want {
			t.Errorf("column %s: nanoseconds %v", tab.Columns()[i].Name, !want)
		}
	}
	check("all", tab, "t", all)
	check("with nulls", tab, "n", some)
	check("microseconds", tab, "u", cut)
	check("a few", read().Take([]int{2, 0, -1}), "t", []*time.Time{all[2], all[0], nil})
	micro := read().Select([]int{2}).Rename(func(string) string { return "t" })
	for _, tables := range [][]*Table{{tab, micro}, {micro, tab},
		{micro, micro, tab, FromVectors([]string{"t"}, []*Vector{NewNulls(Type{}, 1)}), tab}} {
		joined, err := Concat(tables, column.Intersection)
		if err != nil {
			t.Fatal(err)
		}
		var want []*time.Time
		for _, x := range tables {
			switch {
			case x == micro:
				want = append(want, cut...)
			case x == tab:
				want = append(want, all...)
			default:
				want = append(want, nil)
			}
		}
		check("joined", joined, "t", want)
		if !joined.Columns()[0].Type.Nano {
			t.Error("joined, nanoseconds are no more")
		}
	}
	v, err := tab.Column(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"2020-01-02T03:04:05.123456789+00:00"`, `"2020-01-02T03:04:05.123456+00:00"`,
		`"1969-12-31T23:59:59.999999999+00:00"`} {
		if got := string(v.AppendJSON(nil, i)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
