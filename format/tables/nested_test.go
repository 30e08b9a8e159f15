package tables

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pqgo "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// nestedRow is row() of testdata/make.py as JSON, a map as a list of key and value.
func nestedRow(i int) map[string]string {
	list := func(n int, f func(k int) string) string {
		var s []string
		for k := range n {
			s = append(s, f(k))
		}
		return "[" + strings.Join(s, ",") + "]"
	}
	or := func(null bool, s string) string {
		if null {
			return "null"
		}
		return s
	}
	n := fmt.Sprint
	li := list(i%4, func(k int) string { return or((i+k)%4 == 1, n(i*10+k)) })
	if i%5 == 0 {
		li = "[]"
	}
	return map[string]string{
		"i":  n(i),
		"li": or(i%7 == 3, li),
		"ll": or(i%6 == 2, list(i%3, func(k int) string {
			return or((i+k)%5 == 0, list((i+k)%3, func(m int) string { return n(i + k + m) }))
		})),
		"st": or(i%4 == 1, `{"a":`+or(i%3 == 0, n(i))+`,"t":`+list(i%3, func(int) string {
			return fmt.Sprintf(`"é%d"`, i)
		})+"}"),
		"ls": or(i%8 == 0, list(i%3, func(k int) string {
			return `{"x":` + n(i+k) + `,"y":` + or(k == 1, fmt.Sprintf(`"s%d"`, k)) + "}"
		})),
		"m": or(i%9 == 4, "{"+strings.Trim(list(i%3, func(k int) string {
			return fmt.Sprintf(`"k%d":%s`, k, or(k == 0, n(k)))
		}), "[]")+"}"),
	}
}

func nestedFiles(t testing.TB) map[string][]byte {
	names, err := filepath.Glob("testdata/nested-*.parquet")
	if err != nil || len(names) != 2 {
		t.Fatalf("%v %v", names, err)
	}
	files := map[string][]byte{}
	for _, n := range names {
		b := testfile.Read(t, n)
		files[filepath.Base(n)] = b
	}
	return files
}

func read(t testing.TB, b []byte, o Options) *Table {
	t.Helper()
	tab, err := Read(t.Context(), &corpus.Mem{B: b}, 0, int64(len(b)), o)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func checkNested(t *testing.T, tab *Table, rows []int) {
	t.Helper()
	if tab.Len() != len(rows) {
		t.Fatalf("%d rows, want %d", tab.Len(), len(rows))
	}
	for name := range nestedRow(0) {
		v, err := tab.Column(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for k, i := range rows {
			want := nestedRow(i)[name]
			if i < 0 {
				want = "null"
			}
			got := string(v.AppendJSON(nil, k))
			if unquoted := strings.ReplaceAll(got, `\u00e9`, "é"); unquoted != want {
				t.Fatalf("%s of row %d: %s, want %s", name, i, got, want)
			}
		}
	}
}

func upTo(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// TestNested promises that lists, lists of lists, structs and maps, of both versions of pages and in several row
// groups, have the values that were written; so do rows taken from them, and concatenated tables.
func TestNested(t *testing.T) {
	for name, b := range nestedFiles(t) {
		t.Run(name, func(t *testing.T) {
			tab := read(t, b, Options{})
			checkNested(t, tab, upTo(100))
			some := []int{99, 3, 3, -1, 50, 0}
			checkNested(t, tab.Take(some), some)
			both, err := Concat([]*Table{tab, tab.Take(some), FromVectors(nil, nil)}, column.Intersection)
			if err != nil || len(both.Columns()) != 0 {
				t.Fatal(both.Columns(), err)
			}
			if both, err = Concat([]*Table{tab, tab.Take(some)}, column.Strict); err != nil {
				t.Fatal(err)
			}
			checkNested(t, both, append(upTo(100), some...))
		})
	}
}

// TestEmptyTable reads a table without rows as parquet-cpp writes it: its column chunks have no pages.
func TestEmptyTable(t *testing.T) {
	b := testfile.Read(t, "testdata/empty.parquet")
	tab := read(t, b, Options{})
	for _, name := range []string{"a", "b"} {
		if v, err := tab.Column(t.Context(), name); err != nil || v.Len() != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPrune promises that pruning keeps every row in the range, leaves out rows, and gives the rows' own values.
func TestPrune(t *testing.T) {
	for name, b := range nestedFiles(t) {
		for _, c := range []struct{ lo, hi, most int }{{10, 20, 24}, {36, 37, 20}, {90, 300, 26}, {50, 50, 8},
			{300, 400, 0}, {0, 99, 100}} {
			tab := read(t, b, Options{})
			got, rows, err := tab.Prune(t.Context(), []Range{{Column: 0, Lo: int64(c.lo), Hi: int64(c.hi)}})
			if err != nil {
				t.Fatal(err)
			}
			if rows == nil {
				if got != tab || c.most < 100 {
					t.Errorf("%s: %d to %d: nothing was left out", name, c.lo, c.hi)
				}
				continue
			}
			if len(rows) > c.most {
				t.Errorf("%s: %d to %d: %d rows are left", name, c.lo, c.hi, len(rows))
			}
			for i := c.lo; i <= min(c.hi, 99); i++ {
				if !slices.Contains(rows, i) {
					t.Errorf("%s: %d to %d: row %d is left out", name, c.lo, c.hi, i)
				}
			}
			checkNested(t, got, rows)
			named, again, err := read(t, b, Options{}).Rename(strings.ToUpper).Prune(t.Context(),
				[]Range{{Column: 0, Lo: int64(c.lo), Hi: int64(c.hi)}})
			if err != nil || !slices.Equal(again, rows) || named.Columns()[0].Name != "I" {
				t.Fatalf("%v %v", again, err)
			}
			checkNested(t, named.Rename(strings.ToLower), rows)
		}
	}
}

// TestConcat promises that columns that some tables lack are left out, filled or refused, and that types are joined
// where nothing is lost.
func TestConcat(t *testing.T) {
	ints := func(bits uint8, v ...int64) *Vector { return NewInts(Type{Kind: Int64, Bits: bits}, v, nil) }
	a := FromVectors([]string{"x", "y", "n"},
		[]*Vector{ints(8, 1, 2), NewStrings([]string{"p", "q"}, []bool{false, true}), NewNulls(Type{}, 2)})
	b := FromVectors([]string{"z", "x", "n"}, []*Vector{ints(64, 7), ints(64, 1<<40),
		NewFloats(Type{Kind: Float64, Bits: 32}, []float64{0.5}, nil)})
	show := func(tab *Table) (s string) {
		for i, c := range tab.Columns() {
			v, err := tab.At(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			s += c.Name + " " + c.Type.String()
			for r := range tab.Len() {
				s += " " + string(v.AppendJSON(nil, r))
			}
			s += "; "
		}
		return s
	}
	for mode, want := range map[column.Mode]string{
		column.Intersection: "x int64 1 2 1099511627776; n float32 null null 0.5; ",
		column.FillMissing: `x int64 1 2 1099511627776; y text "p" null null; n float32 null null 0.5; ` +
			"z int64 null null 7; ",
	} {
		got, err := Concat([]*Table{a, b}, mode)
		if err != nil {
			t.Fatal(err)
		}
		if s := show(got); s != want {
			t.Errorf("got %s\nwant %s", s, want)
		}
	}
	messages := Missing([]*Table{a, nil, b}, []string{"a", "none", "b"}, column.FillMissing)
	if !slices.Equal(messages, []string{`column "y" is filled with null: it is not in b`,
		`column "z" is filled with null: it is not in a`}) {
		t.Errorf("messages %q", messages)
	}
	if _, err := Concat([]*Table{a, b}, column.Strict); fault.KindOf(err) != fault.Unsupported {
		t.Error(err)
	}
	bytes := NewBytes(Type{Kind: Binary}, []byte("1"), []uint32{0, 1}, nil)
	if _, err := Concat([]*Table{a, FromVectors([]string{"x"}, []*Vector{bytes})},
		column.Intersection); fault.KindOf(err) != fault.Unsupported {
		t.Error(err)
	}
}

func take(t *testing.T, v *Vector, rows []int) *Vector {
	t.Helper()
	out, err := v.Take(rows)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNoValueAtAll promises that a column without any value, such as structs that are all null, can be joined and taken
// from.
func TestNoValueAtAll(t *testing.T) {
	types := []Type{{Kind: Bool}, {Kind: Int64, Bits: 32}, {Kind: Float64, Bits: 64},
		{Kind: Decimal, Precision: 5, Scale: 2}, {Kind: String}, {Kind: Date},
		{Kind: List, Elem: &Type{Kind: Int64, Bits: 64}},
		{Kind: Struct, Fields: []Column{{Name: "a", Type: Type{Kind: Float64, Bits: 64}}}}}
	for _, typ := range types {
		none := take(t, &Vector{typ: typ, offs: []uint32{0}, children: NewNulls(typ, 0).children}, []int{-1, -1})
		if n := len(none.Ints()) + len(none.Floats()); typ.Kind != String && typ.Kind != List &&
			typ.Kind != Struct && n != 2 {
			t.Errorf("%v: %d values", typ, n)
		}
		both, err := Append(typ, none, NewNulls(typ, 1), take(t, none, []int{1, 0}))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			if got := string(both.AppendJSON(nil, i)); got != "null" {
				t.Errorf("%v: row %d is %s", typ, i, got)
			}
		}
	}
}

// TestNullStructsJoined promises that structs that are all null in one table do not move the values of the next.
func TestNullStructsJoined(t *testing.T) {
	type inner struct {
		A float64 `parquet:"a"`
		B int32   `parquet:"b"`
	}
	type row struct {
		S *inner `parquet:"s,optional"`
	}
	open := func(rows ...row) *Table {
		var b bytes.Buffer
		if err := pqgo.Write(&b, rows); err != nil {
			t.Fatal(err)
		}
		tab, err := Read(t.Context(), memory(b.Bytes()), 0, int64(b.Len()), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return tab
	}
	parts := []*Table{open(row{}, row{}), open(row{&inner{1.5, 7}}, row{}, row{&inner{2.5, 8}})}
	tab, err := Concat(parts, column.Strict)
	if err != nil {
		t.Fatal(err)
	}
	v, err := tab.At(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"null", "null", `{"a":1.5,"b":7}`, "null", `{"a":2.5,"b":8}`} {
		if got := string(v.AppendJSON(nil, i)); got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
}

// TestConcatIntegersWithFloats joins integers and floats of one column, which pandas writes, if floats hold every
// integer.
func TestConcatIntegersWithFloats(t *testing.T) {
	floats := NewFloats(Type{Kind: Float64, Bits: 64}, []float64{0.5, 0}, []bool{false, true})
	join := func(v *Vector) (s string, err error) {
		tab, err := Concat([]*Table{FromVectors([]string{"x"}, []*Vector{v}),
			FromVectors([]string{"x"}, []*Vector{floats})}, column.Intersection)
		if err != nil {
			return "", err
		}
		got, err := tab.At(t.Context(), 0)
		if err != nil {
			return "", err
		}
		for i := range tab.Len() {
			s += string(got.AppendJSON(nil, i)) + " "
		}
		return s, nil
	}
	kinds := func(k Kind, bits uint8, v ...int64) *Vector { return NewInts(Type{Kind: k, Bits: bits}, v, nil) }
	for want, v := range map[string]*Vector{
		"1589241600 -9007199254740992 0.5 null ": kinds(Int64, 64, 1589241600, -1<<53),
		"18446744073709550000 0.5 null ":         kinds(Uint64, 64, -2048),
		"-9223372036854776000 0.5 null ":         kinds(Int64, 64, math.MinInt64),
	} {
		if got, err := join(v); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	for _, v := range []*Vector{kinds(Int64, 64, 1<<53+1), kinds(Int64, 64, math.MaxInt64), kinds(Uint64, 64, -1)} {
		if got, err := join(v); fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "column x") {
			t.Errorf("%q, %v", got, err)
		}
	}
	bytes := NewBytes(Type{Kind: Binary}, []byte("a"), []uint32{0, 1}, nil)
	if _, err := join(bytes); err == nil ||
		!strings.Contains(err.Error(), "is binary in one table and float64 in another") {
		t.Error(err)
	}
}

// TestMixed promises that only columns whose types cannot be joined fail to load.
func TestMixed(t *testing.T) {
	text, number := NewStrings([]string{"a"}, nil), NewFloats(Type{Kind: Float64, Bits: 64}, []float64{1}, nil)
	tables := []*Table{
		FromVectors([]string{"x", "y"}, []*Vector{text, number}),
		FromVectors([]string{"x", "y"}, []*Vector{number, number}), FromVectors([]string{"x"}, []*Vector{text}),
	}
	if _, err := Concat([]*Table{tables[2], FromVectors([]string{"x"}, []*Vector{number})},
		column.Strict); fault.KindOf(err) != fault.Unsupported {
		t.Error(err)
	}
	got, err := Concat(tables, column.Mixed)
	if err != nil {
		t.Fatal(err)
	}
	if y, err := got.Column(t.Context(), "y"); err != nil || y.Len() != 3 || y.Float(1) != 1 || !y.Null(2) {
		t.Error(y, err)
	}
	if _, err := got.Column(t.Context(), "x"); fault.KindOf(err) != fault.Unsupported ||
		!strings.Contains(err.Error(), "column x: is text in one table and float64 in another") {
		t.Error(err)
	}
}

// TestBrokenTables promises values or an error with a kind for every changed byte and every cut.
func TestBrokenTables(t *testing.T) {
	race.SkipCovered(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for name, b := range nestedFiles(t) {
		for k := range 300 {
			if err := everything(t.Context(), corpus.DamageParquet(rng, b, k)); err != nil && fault.KindOf(err) == 0 {
				t.Fatalf("%s: %v has no kind", name, err)
			}
		}
	}
}

// everything reads all columns, pruned and whole, and prints them.
func everything(ctx context.Context, b []byte) error {
	tab, err := Read(ctx, &corpus.Mem{B: b}, 0, int64(len(b)), Options{MaxRows: 1 << 16, MaxBytes: 1 << 24})
	if err != nil {
		return err
	}
	var last error
	var line []byte
	for i := range min(len(tab.Columns()), 40) {
		part, _, err := tab.Prune(ctx, []Range{{Column: i, Lo: int64(5), Hi: int64(50)}})
		if err != nil {
			last = err
			continue
		}
		for _, u := range []*Table{tab, part} {
			v, err := u.At(ctx, i)
			if err != nil {
				last = err
				continue
			}
			for r := range min(v.Len(), 1000) {
				line = v.AppendJSON(line[:0], r)
			}
		}
	}
	return last
}

func FuzzTable(f *testing.F) {
	for _, b := range nestedFiles(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := everything(t.Context(), b); err != nil && fault.KindOf(err) == 0 {
			t.Errorf("%v has no kind", err)
		}
	})
}

// TestForgedFooters promises that a forged footer allocates at most four times its file (and a little for files of a
// few bytes), whatever it counts and however many small things it lists.
func TestForgedFooters(t *testing.T) {
	race.SkipCovered(t)
	wrap := func(footer []byte) []byte {
		b := append([]byte("PAR1"), footer...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(footer)))
		return append(b, "PAR1"...)
	}
	list := func(field byte, n int, elem []byte) []byte {
		out := append([]byte{field<<4 | 9, 0xfc}, binary.AppendUvarint(nil, uint64(n))...)
		return append(out, bytes.Repeat(elem, n)...)
	}
	leaf := []byte{0x15, 2, 0x25, 0, 0x18, 0, 0}           // int32, required, named ""
	root := []byte{0x48, 0, 0x15, 2, 0}                    // one child
	group := []byte{0x48, 0, 0x15, 0xfe, 0xff, 0x7f, 0}    // many children
	chunk := []byte{0x1c, 0x56, 0, 0x16, 0, 0x26, 8, 0, 0} // no bytes at 4
	rowGroup := append(append([]byte{0x19, 0x1c}, chunk...), 0x26, 0, 0)
	const n = 1 << 18
	for name, footer := range map[string][]byte{
		"leaves":     list(2, n, leaf),
		"groups":     list(2, n, group),
		"row groups": append(append([]byte{0x29, 0x2c}, append(root, leaf...)...), list(2, n, rowGroup)...),
		"empty ones": append(append([]byte{0x29, 0x2c}, append(root, leaf...)...), list(2, n, []byte{0x36, 0, 0})...),
		"key values": list(5, n, []byte{0x18, 1, 'k', 0x18, 1, 'v', 0}),
		"lists":      list(2, n, []byte{0x19, 0x0c, 0}),
		"counts":     {0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 7},
	} {
		b := wrap(footer)
		var err error
		got := corpus.Allocated(func() { _, err = Read(t.Context(), &corpus.Mem{B: b}, 0, int64(len(b)), Options{}) })
		if k := fault.KindOf(err); err != nil && k == 0 {
			t.Errorf("%s: %v", name, err)
		}
		if most := uint64(4*len(b) + 2<<20); got > most {
			t.Errorf("%s: %d bytes for a file of %d: %v", name, got, len(b), err)
		}
	}
}

// TestInt96 reads INT96 as timestamps: nanoseconds of the day and the number of the Julian day, where 2451545 is
// 2000-01-01.
func TestInt96(t *testing.T) {
	type row struct {
		At *deprecated.Int96 `parquet:"at,optional"`
	}
	at := func(day int32, ns uint64) row {
		return row{&deprecated.Int96{uint32(ns), uint32(ns >> 32), uint32(day)}}
	}
	noon := uint64(12 * time.Hour)
	var b bytes.Buffer
	if err := pqgo.Write(&b, []row{at(2451545, noon), at(2440588, 1999), at(2440587, uint64(24*time.Hour)-1), {},
		at(math.MaxInt32, 0), at(math.MinInt32, 0)}); err != nil {
		t.Fatal(err)
	}
	tab, err := Read(t.Context(), memory(b.Bytes()), 0, int64(b.Len()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := tab.At(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"2000-01-01T12:00:00"`, `"1970-01-01T00:00:00.000001"`,
		`"1969-12-31T23:59:59.999999"`, "null"} {
		if got := string(v.AppendJSON(nil, i)); got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
	if v.Int(4) < v.Int(0) || v.Int(5) > v.Int(0) {
		t.Errorf("the furthest days are %d and %d", v.Int(5), v.Int(4))
	}
}

// TestTakeOfTooMuch promises that strings beyond 32-bit offsets are refused before they are copied.
func TestTakeOfTooMuch(t *testing.T) {
	v := NewStrings([]string{strings.Repeat("x", 1<<20)}, nil)
	tab := FromVectors([]string{"x"}, []*Vector{v})
	if got, err := tab.Take(make([]int, 3)).Column(t.Context(), "x"); err != nil || got.Str(2) != v.Str(0) {
		t.Error(err)
	}
	if _, err := tab.Take(make([]int, 1<<12)).Column(t.Context(), "x"); fault.KindOf(err) != fault.Limit ||
		!strings.Contains(err.Error(), "column x") {
		t.Error(err)
	}
	for _, typ := range []Type{{Kind: Struct, Fields: []Column{{Name: "a", Type: v.typ}}}, {Kind: List, Elem: &v.typ}} {
		if _, err := (&Vector{typ: typ, n: 1, offs: []uint32{0, 1}, children: []*Vector{v}}).Take(make([]int,
			1<<12)); fault.KindOf(err) != fault.Limit {
			t.Errorf("%v: %v", typ, err)
		}
	}
}
