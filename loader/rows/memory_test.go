package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// listed is a column in memory. A nil value is null.
type listed struct {
	kind   catalog.Kind
	unit   time.Duration
	values []any
}

func valueOf(value any) catalog.Value {
	switch v := value.(type) {
	case int64:
		return catalog.Value{Int: v}
	case float64:
		return catalog.Value{Float: v}
	case string:
		return catalog.Value{Text: []byte(v)}
	}
	return catalog.Value{Null: true}
}

// stored is a store of columns in memory, and of rasters. Its ids are the numbers of the rows from first on.
type stored struct {
	n, first int
	columns  map[string]listed
	rasters  func(field int, row int64) (catalog.Asset, error)
	fields   int
	err      error // of columns and ids
}

func (s *stored) Len() int64            { return int64(s.n) }
func (s *stored) Fields() int           { return s.fields }
func (s *stored) Kind(int) catalog.Kind { return catalog.Raster }
func (s *stored) Fingerprint() string   { return fmt.Sprint(s.first) }
func (s *stored) Close() error          { return nil }

func (s *stored) ID(_ context.Context, row int64) (string, error) {
	return strconv.Itoa(s.first + int(row)), nil
}

func (s *stored) ScanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	err := s.err
	for row := int64(0); row < s.Len() && err == nil; row++ {
		id, _ := s.ID(ctx, row)
		err = visit(row, id)
	}
	return err
}

func (s *stored) Asset(_ context.Context, field int, row int64) (catalog.Asset, error) {
	return s.rasters(field, row)
}

func (s *stored) Value(context.Context, int, int64) (catalog.Value, error) {
	return catalog.Value{}, s.err
}

func (s *stored) Column(_ context.Context, name string) (*Column, error) {
	c, ok := s.columns[name]
	switch {
	case s.err != nil:
		return nil, s.err
	case !ok:
		return nil, fault.New(fault.NotFound, "column "+name, "it is not there")
	}
	return &Column{Kind: c.kind, Unit: c.unit, Rows: s.Len(),
		Each: func(_ context.Context, visit func(row int64, v catalog.Value) error) (err error) {
			for row := 0; row < s.n && err == nil; row++ {
				err = visit(int64(row), valueOf(c.values[row]))
			}
			return err
		}}, nil
}

// inMemory is a table of columns without fields.
func inMemory(n, first int, columns map[string]listed) *Table {
	return New(&stored{n: n, first: first, columns: columns})
}

// TestMicrosAgainstBigNumbers: a number of units is rounded down to microseconds, or no time beyond int64.
func TestMicrosAgainstBigNumbers(t *testing.T) {
	units := []time.Duration{time.Nanosecond, time.Microsecond, time.Millisecond, time.Second, time.Hour,
		24 * time.Hour}
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom(units).Draw(t, "unit")
		bounds := math.MaxInt64 / max(int64(unit/time.Microsecond), 1)
		number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-5000, 5000), rapid.Int64Range(-1<<52, 1<<52),
			rapid.SampledFrom([]int64{bounds, -bounds, min(bounds, math.MaxInt64-1) + 1, -bounds - 1}))
		n := number.Draw(t, "number")
		if rapid.Bool().Draw(t, "whole") { // microseconds
			n -= n % 1000
		}
		exact := new(big.Int).Mul(big.NewInt(n), big.NewInt(int64(unit)))
		exact.Div(exact, big.NewInt(int64(time.Microsecond))) // rounded down, since the divisor is positive
		got := micros(n, unit)
		switch {
		case exact.IsInt64():
			if got != exact.Int64() {
				t.Fatalf("%d of %v: %d, want %v", n, unit, got, exact)
			}
		case got != NoTime:
			t.Fatalf("%d of %v: %d, want no time", n, unit, got)
		}
	})
	if micros(5, 0) != NoTime {
		t.Error("a number without a unit is a time")
	}
}

// TestTimesOfAColumn: times are those of the first column that holds some; numbers without a unit count as seconds in
// the columns of times alone.
func TestTimesOfAColumn(t *testing.T) {
	table := inMemory(4, 0, map[string]listed{
		"text":     {catalog.Text, 0, []any{"1970-01-01T00:00:01Z", nil, "spring", "1969-12-31"}},
		"none":     {catalog.Text, 0, []any{"a", nil, "b", "c"}},
		"number":   {catalog.Int, 0, []any{int64(1), nil, nil, nil}},
		"datetime": {catalog.Int, 0, []any{int64(3), int64(-1), nil, int64(math.MaxInt64)}},
		"days":     {catalog.Int, 24 * time.Hour, []any{int64(1), nil, int64(-1), int64(0)}},
		"float":    {catalog.Float, time.Millisecond, []any{1.0004, -0.0006, math.NaN(), math.Inf(1)}},
		"far": {catalog.Float, time.Microsecond, []any{math.Ldexp(1, 63), -math.Ldexp(1, 63), math.Ldexp(1,
			62), 0.0}},
		"seconds": {catalog.Float, 0, []any{1.0, 1.0, 1.0, 1.0}},
	})
	const day = 86_400_000_000
	for _, c := range []struct {
		columns []string
		want    []int64
	}{
		{nil, nil}, {[]string{"absent"}, nil}, {[]string{"none", "absent"}, nil}, {[]string{"number"}, nil},
		{[]string{"seconds"}, nil},
		{[]string{"absent", "none", "text", "days"}, []int64{1e6, NoTime, NoTime, -day}},
		{[]string{"datetime"}, []int64{3e6, -1e6, NoTime, NoTime}},
		{[]string{"days", "text"}, []int64{day, NoTime, -day, 0}},
		{[]string{"float"}, []int64{1000, -1, NoTime, NoTime}},
		{[]string{"far"}, []int64{NoTime, NoTime, 1 << 62, 0}},
	} {
		if got, err := Times(t.Context(), table, c.columns); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, %v; want %v", c.columns, got, err, c.want)
		}
	}
}

// TestOrderedComparesLikeFloats: the integers of two floats compare as the floats do, and both zeros are equal.
func TestOrderedComparesLikeFloats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1),
			math.Inf(-1), math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64}))
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		if got := cmp.Compare(ordered(a), ordered(b)); got != cmp.Compare(a, b) {
			t.Fatalf("%v and %v: %d", a, b, got)
		}
	})
}

// TestGroupsOfColumns: rows have the same number where their values are equal, or their days in UTC, and -1 without
// one.
func TestGroupsOfColumns(t *testing.T) {
	table := inMemory(6, 0, map[string]listed{
		"text": {catalog.Text, 0, []any{"a", "", nil, "a", "b", ""}},
		"time": {catalog.Int, time.Second,
			[]any{int64(-1), int64(-86_400), int64(0), int64(86_399), nil, int64(-86_401)}},
	})
	for _, c := range []struct {
		column string
		days   bool
		want   []int // rows with equal numbers have equal numbers here
	}{{"text", false, []int{0, 1, -1, 0, 2, 1}}, {"time", true, []int{0, 0, 1, 1, -1, 2}}} {
		got, err := GroupsOf(t.Context(), table, c.column, c.days)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			for k := range got {
				equal := c.want[i] == c.want[k]
				if (got[i] == got[k]) != equal || (got[i] == -1) != (c.want[i] == -1) || got[i] < -1 {
					t.Errorf("%s: rows %d and %d have %d and %d", c.column, i, k, got[i], got[k])
				}
			}
		}
	}
	for _, days := range []bool{false, true} {
		if _, err := GroupsOf(t.Context(), table, "absent", days); fault.KindOf(err) != fault.NotFound {
			t.Errorf("days %v: %v", days, err)
		}
	}
	if _, err := GroupsOf(t.Context(), table, "text", true); fault.KindOf(err) != fault.NotFound {
		t.Errorf("days of text: %v", err)
	}
}

// TestStrataAndSeriesOfColumns: strata of integers ascend as numbers; sequences are in order of time, whatever the
// zone; rows without a key or a time are in none.
func TestStrataAndSeriesOfColumns(t *testing.T) {
	table := inMemory(5, 0, map[string]listed{
		"number": {catalog.Int, 0, []any{int64(10), int64(9), nil, int64(-2), int64(9)}},
		"key":    {catalog.Text, 0, []any{"a", "a", "a", nil, "a"}},
		"time": {catalog.Text, 0, []any{"2024-01-02T00:00:00+02:00", "2024-01-01T23:00:00Z", nil, "2024-01-01",
			"2024-01-01T20:00:00.5Z"}},
		"bad": {catalog.Text, 0, []any{"2024-01-02", "spring", nil, "2024-01-01", "2024-01-01"}},
	})
	for want, rows := range map[string][]uint32{
		"[{-2 [3]} {9 [1 4]} {10 [0]}]": nil, "[{9 [4 1]}]": {4, 2, 1}, "[]": {2},
	} {
		if got, err := StrataOf(t.Context(), table, "number", rows); err != nil || fmt.Sprint(got) != want {
			t.Errorf("rows %v: %v, %v; want %s", rows, got, err, want)
		}
	}
	series, err := SeriesOf(t.Context(), table, &spec.Time{Key: "key", Order: "time", Length: 4, Stride: 4}, nil)
	if err != nil || series.Len() != 1 {
		t.Fatal(series, err)
	}
	got := make([]int64, 4)
	if series.Rows(0, got); !slices.Equal(got, []int64{4, 0, 1, -1}) { // 20:00:00.5, 22:00 and 23:00 UTC
		t.Errorf("a sequence of %v", got)
	}
	_, err = SeriesOf(t.Context(), table, &spec.Time{Key: "key", Order: "bad", Length: 1, Stride: 1}, nil)
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("text that is no time: %v", err)
	}
}

// columnsOf returns columns of n rows, some of whose values are null.
func columnsOf(n int) map[string]listed {
	columns := map[string]listed{"i": {kind: catalog.Int}, "f": {kind: catalog.Float}, "t": {kind: catalog.Text},
		"part": {kind: catalog.Text}}
	for _, name := range []string{"x0", "y0", "x1", "y1"} {
		columns[name] = listed{kind: catalog.Float}
	}
	for row := range n {
		for name, column := range columns {
			var value any
			switch column.kind {
			case catalog.Int:
				value = int64(row*row%37 - 18)
			case catalog.Float:
				value = float64(row*len(name)*7%23)/4 + float64(name[len(name)-1]&1)
			default:
				value = []string{"train", "val", "test"}[row*row%3]
			}
			if row%11 == 5 && name != "part" {
				value = nil
			}
			column.values = append(column.values, value)
			columns[name] = column
		}
	}
	return columns
}

// TestSplitsAgainstASlowOne: rows are in the part that their id, value or place has by itself.
func TestSplitsAgainstASlowOne(t *testing.T) {
	const n = 200
	columns := columnsOf(n)
	table := inMemory(n, 1000, columns)
	shares := []spec.Share{{Name: "a", Parts: 1 << 31}, {Name: "b", Parts: 1 << 30}, {Name: "c", Parts: 1 << 30}}
	split := shuffle.Split{Seed: 7}
	for _, share := range shares {
		split.Shares = append(split.Shares, shuffle.Share{Name: share.Name, Parts: share.Parts})
	}
	name := func(share int) string {
		if share < 0 {
			return ""
		}
		return shares[share].Name
	}
	valued := func(column string, row int) string {
		value := columns[column].values[row]
		if value == nil {
			return ""
		}
		return name(split.OfText(fmt.Sprint(value)))
	}
	ranges := []spec.Range{{Name: "a", To: []byte("-3")}, {Name: "b", From: []byte("-5"), To: []byte("4")},
		{Name: "c", From: []byte("9")}}
	for what, c := range map[string]struct {
		split spec.Split
		part  func(row int) string
	}{
		"hash": {spec.Split{By: "hash"}, func(row int) string {
			return name(split.OfText(strconv.Itoa(1000 + row)))
		}},
		"integers": {spec.Split{By: "column", Column: "i"}, func(row int) string { return valued("i", row) }},
		"floats":   {spec.Split{By: "column", Column: "f"}, func(row int) string { return valued("f", row) }},
		"strings":  {spec.Split{By: "column", Column: "t"}, func(row int) string { return valued("t", row) }},
		"dates": {spec.Split{By: "date", Column: "i", Ranges: ranges}, func(row int) string {
			value, known := columns["i"].values[row].(int64)
			switch {
			case known && value < -3:
				return "a"
			case known && value >= -5 && value < 4:
				return "b"
			case known && value >= 9:
				return "c"
			}
			return ""
		}},
		"cells": {spec.Split{By: "cell", Columns: []string{"x0", "y0", "x1", "y1"}, Size: 0.5}, func(row int) string {
			var box [4]float64
			for i, column := range []string{"x0", "y0", "x1", "y1"} {
				box[i] = math.NaN()
				if value, known := columns[column].values[row].(float64); known {
					box[i] = value
				}
			}
			return name(split.OfCell(box, 0.5))
		}},
	} {
		c.split.Seed = 7
		if c.split.By != "date" {
			c.split.Shares = shares
		}
		for _, use := range []string{"a", "b", "c"} {
			subset := &spec.Subset{Split: &c.split, Use: use}
			got, err := selectRows(t.Context(), table, subset, resources.Options{})
			if err != nil {
				t.Fatal(what, err)
			}
			var want []uint32
			for row := range n {
				if c.part(row) == use {
					want = append(want, uint32(row))
				}
			}
			if !slices.Equal(got, want) || len(want) == 0 && what != "strings" { // of three values
				t.Errorf("%s, part %s: %v, want %v", what, use, got, want)
			}
		}
	}
}

func TestSplitOfGivenParts(t *testing.T) {
	columns := columnsOf(50)
	table := inMemory(50, 0, columns)
	given := &spec.Split{By: "given", Column: "part"}
	got, err := selectRows(t.Context(), table, &spec.Subset{Split: given, Use: "val"}, resources.Options{})
	if err != nil || slices.ContainsFunc(got, func(row uint32) bool { return columns["part"].values[row] != "val" }) ||
		len(got) == 0 {
		t.Errorf("the part val: %v, %v", got, err)
	}
	_, err = selectRows(t.Context(), table, &spec.Subset{Split: given, Use: "dev"}, resources.Options{})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("a part that is not there: %v", err)
	}
}

// TestFirstAssets: the first sample that can be read is taken, of at most firstTries; under the policy error it must be
// the first one, and an error that is not the fault of a sample ends the search.
func TestFirstAssets(t *testing.T) {
	bad, network := fault.At(fault.Corrupt, "x", 0, "bad"), errors.New("network")
	for _, c := range []struct {
		good, down int // the first row that can be read, and the row where the network fails
		n          int
		policy     string
		rows       []uint32
		tries      int
		ok         bool
	}{
		{0, -1, 9, spec.BadError, nil, 1, true}, {1, -1, 9, spec.BadError, nil, 1, false},
		{3, -1, 9, spec.BadSkip, nil, 4, true}, {3, 1, 9, spec.BadSkip, nil, 2, false},
		{8, -1, 9, spec.BadSkip, nil, 9, true}, {9, -1, 9, spec.BadSkip, nil, 9, false},
		{firstTries - 1, -1, 5000, spec.BadSkip, nil, firstTries, true},
		{firstTries, -1, 5000, spec.BadSkip, nil, firstTries, false},
		{6, -1, 9, spec.BadSkip, []uint32{2, 4, 7}, 3, true}, {8, -1, 9, spec.BadSkip, []uint32{2, 4, 7}, 3, false},
	} {
		tries := 0
		open := func(row int64) (catalog.Asset, error) {
			tries++
			switch {
			case row == int64(c.down):
				return catalog.Asset{}, network
			case row < int64(c.good):
				return catalog.Asset{}, bad
			}
			return catalog.Asset{URI: fmt.Sprint(row)}, nil
		}
		store := &stored{n: c.n, fields: 2}
		store.rasters = func(_ int, row int64) (catalog.Asset, error) { return open(row) }
		table := New(store)
		got, err := FirstAssets(t.Context(), table, []int{1}, c.policy, c.rows)
		want := strconv.Itoa(c.good)
		if c.rows != nil {
			want = "7"
		}
		if (err == nil) != c.ok || tries != c.tries || c.ok && (len(got) != 1 || got[0].URI != want) ||
			!c.ok && !errors.Is(err, fault.Corrupt) {
			t.Errorf("%+v: %v, %v after %d tries", c, got, err, tries)
		}
	}
}

// checkFirst compares the first rows with the second field, which dataset 1 alone has.
func checkFirst(t *rapid.T, joined *Joined, owners []int) {
	if len(joined.tables) < 2 {
		return
	}
	var all, some []uint32
	for row := range uint32(len(owners)) {
		if owners[row] == 1 {
			if all = append(all, row); row%2 == 0 {
				some = append(some, row)
			}
		}
	}
	var even []uint32
	for row := uint32(0); int(row) < len(owners); row += 2 {
		even = append(even, row)
	}
	table := &Table{N: int64(len(owners)), Joined: joined}
	if got := table.having(1, nil); !slices.Equal(got, all) || joined.lead(1) != 1 {
		t.Fatalf("rows %v with the second field, want %v", got, all)
	}
	if joined.hasAny(1, nil) != (all != nil) || even != nil && joined.hasAny(1, even) != (some != nil) {
		t.Fatalf("rows of the second field: %v, and of %v %v", joined.hasAny(1, nil), even, joined.hasAny(1, even))
	}
	if some == nil { // others have the field's form
		some = all
	}
	if got := table.having(1, even); some != nil && even != nil && !slices.Equal(got, some) {
		t.Fatalf("rows %v of %v with the second field, want %v", got, even, some)
	}
}

// TestFirstRowsAreFew: as many first rows of a dataset are returned as are tried.
func TestFirstRowsAreFew(t *testing.T) {
	for _, n := range []int64{firstTries - 1, firstTries, firstTries + 1, 2 * firstTries} {
		of := func(rows int64) *Table { return &Table{N: rows, Fields: make([]Field, 1)} }
		joined := &Joined{tables: []*Table{of(n), of(5)}, begins: []int64{0, n, n + 5}, fields: [][]int{{0, -1}}}
		table := &Table{N: n + 5, Joined: joined}
		all := make([]uint32, n)
		for i := range all {
			all[i] = uint32(i)
		}
		want := all[:min(n, firstTries)]
		if !slices.Equal(table.having(0, nil), want) || !slices.Equal(table.having(0, all), want) {
			t.Errorf("of %d rows, %d and %d", n, len(table.having(0, nil)), len(table.having(0, all)))
		}
	}
}

// TestJoinedDatasets: a row of the whole is a row of the dataset that holds it, also beside datasets without rows, and
// columns that a dataset lacks are null there.
func TestJoinedDatasets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		joined := &Joined{begins: []int64{0}, fields: [][]int{nil, nil}}
		var owners, places []int
		var ids []string
		var values []any
		for k := range rapid.IntRange(1, 5).Draw(t, "datasets") {
			n := rapid.IntRange(0, 3).Draw(t, "rows")
			columns := map[string]listed{}
			has := k == 0 || rapid.Bool().Draw(t, "has")
			for row := range n {
				owners, places, ids = append(owners, k), append(places, row), append(ids, strconv.Itoa(100*k+row))
				var value any
				if has {
					value = int64(1000*k + row)
				}
				values = append(values, value)
			}
			if has {
				columns["c"] = listed{catalog.Int, 0, values[len(values)-n:]}
			}
			table := inMemory(n, 100*k, columns)
			table.Fields = make([]Field, 1)
			joined.tables = append(joined.tables, table)
			joined.begins = append(joined.begins, int64(len(owners)))
			joined.fields[0] = append(joined.fields[0], 0)
			joined.fields[1] = append(joined.fields[1], map[bool]int{true: 0, false: -1}[k == 1])
		}
		for row := range owners {
			k, below := joined.Dataset(int64(row))
			if k != owners[row] || below != int64(places[row]) {
				t.Fatalf("row %d is row %d of dataset %d, want %d of %d", row, below, k, places[row], owners[row])
			}
		}
		var gotIDs []string
		err := joined.ScanIDs(context.Background(), func(row int64, id string) error {
			if int(row) != len(gotIDs) {
				t.Fatalf("row %d after %d ids", row, len(gotIDs))
			}
			gotIDs = append(gotIDs, id)
			return nil
		})
		if err != nil || !slices.Equal(gotIDs, ids) {
			t.Fatalf("ids %v, want %v; %v", gotIDs, ids, err)
		}
		column, err := joined.Column(context.Background(), "c")
		if err != nil || column.Kind != catalog.Int {
			t.Fatal(column, err)
		}
		visited := 0
		err = column.Scan(context.Background(), func(row int64, v catalog.Value) error {
			if int(row) != visited || fmt.Sprint(v) != fmt.Sprint(valueOf(values[row])) {
				t.Fatalf("row %d has %v, want %v", row, v, values[row])
			}
			visited++
			return nil
		})
		if err != nil || visited != len(values) {
			t.Fatalf("%d rows of %d: %v", visited, len(values), err)
		}
		if _, err := joined.Column(context.Background(), "absent"); fault.KindOf(err) != fault.NotFound {
			t.Fatal(err)
		}
		checkFirst(t, joined, owners)
	})
}

// TestLinearsOfRows: a row has the scales and offsets of its columns, one for all bands or one for each, and those of
// its file where there are none.
func TestLinearsOfRows(t *testing.T) {
	column := func(values ...float64) numberColumn { return numberColumn{"c", values} }
	file := []chunk.Linear{{Scale: 2, Offset: 1}, {Scale: 3, Offset: -1}}
	for _, c := range []struct {
		l    linears
		want [2]chunk.Linear
		kind fault.Kind
	}{
		{linears{}, [2]chunk.Linear{{Scale: 2, Offset: 1}, {Scale: 3, Offset: -1}}, 0},
		{linears{scales: []numberColumn{column(0, 5)}},
			[2]chunk.Linear{{Scale: 5, Offset: 1}, {Scale: 5, Offset: -1}}, 0},
		{linears{offsets: []numberColumn{column(0, 5), column(0, 6)}},
			[2]chunk.Linear{{Scale: 2, Offset: 5}, {Scale: 3, Offset: 6}}, 0},
		{linears{scales: []numberColumn{column(0, 1)}, offsets: []numberColumn{column(0, 0)}},
			[2]chunk.Linear{{Scale: 1}, {Scale: 1}}, 0},
		{linears{scales: []numberColumn{column(0, 1), column(0, 1), column(0, 1)}},
			[2]chunk.Linear{}, fault.Unsupported},
		{linears{scales: []numberColumn{column(0, math.NaN())}}, [2]chunk.Linear{}, fault.Corrupt},
		{linears{offsets: []numberColumn{column(0, math.Inf(-1))}}, [2]chunk.Linear{}, fault.Corrupt},
	} {
		x := &chunk.Index{Bands: 2, Physical: file}
		physical, err := c.l.row(x, 1)
		if fault.KindOf(err) != c.kind {
			t.Errorf("%+v: %v, want %v", c.l, err, c.kind)
			continue
		}
		x.Physical = physical
		for band, want := range c.want {
			if got := x.Linear(band); c.kind == 0 && got != want {
				t.Errorf("%+v: band %d has %+v, want %+v", c.l, band, got, want)
			}
		}
	}
}

// TestRoundUp: the multiple is the first at or after n.
func TestRoundUp(t *testing.T) {
	for n := range 50 {
		for a := 1; a < 9; a++ {
			want := n
			for want%a != 0 {
				want++
			}
			if got := RoundUp(n, a); got != want {
				t.Errorf("%d to a multiple of %d: %d", n, a, got)
			}
		}
	}
}
