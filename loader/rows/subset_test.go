package rows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// fewer is an SQL engine whose conditions and queries are numbers: the rows with a smaller v. A query returns them
// twice and in the other order.
type fewer struct{}

func (fewer) Where(ctx context.Context, t *tables.Table, condition string) (rows []int, err error) {
	bound, err := strconv.ParseInt(condition, 10, 64)
	if err != nil {
		return nil, err
	}
	values, err := t.Column(ctx, "v")
	for i := 0; err == nil && i < t.Len(); i++ {
		if values.Int(i) < bound {
			rows = append(rows, i)
		}
	}
	return rows, err
}

func (e fewer) Run(ctx context.Context, text string, from func(context.Context, string) (*tables.Table, error),
	_ tables.QueryLimits) (*tables.Table, error) {
	name, condition, _ := strings.Cut(text, " ")
	t, err := from(ctx, name)
	if err != nil {
		return nil, err
	}
	rows, err := e.Where(ctx, t, condition)
	slices.Reverse(rows)
	return t.Take(append(rows, rows...)), err
}

// TestConditionsAgainstSlow: each condition sees the samples that those before it left, and after a SELECT its result.
func TestConditionsAgainstSlow(t *testing.T) {
	tables.RegisterSQL(fewer{})
	defer tables.RegisterSQL(nil)
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 9), 1, 12).Draw(t, "values")
		n := len(values)
		listedValues := make([]any, n)
		for i, v := range values {
			listedValues[i] = v
		}
		table := inMemory(n, 0, map[string]listed{"v": {catalog.Int, 0, listedValues}})
		column := tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, values, nil)
		table.store = withData{table.store, tables.FromVectors([]string{"v"}, []*tables.Vector{column})}
		subset := &spec.Subset{}
		keep := slices.Repeat([]bool{true}, n)
		data := make([]int, n) // the sample of each row of data
		for i := range data {
			data[i] = i
		}
		meet := func(some []int) {
			for i := range keep {
				keep[i] = keep[i] && slices.Contains(some, i)
			}
		}
		for range rapid.IntRange(0, 4).Draw(t, "conditions") {
			bound := rapid.Int64Range(0, 10).Draw(t, "bound")
			text, below := fmt.Sprint(bound), func(i int) bool { return values[i] < bound }
			switch rapid.IntRange(0, 2).Draw(t, "condition") {
			case 0:
				subset.Where = append(subset.Where, spec.Condition{SQL: text})
				data = filtered(data, below)
				meet(data)
				if !slices.ContainsFunc(subset.Where, func(c spec.Condition) bool { return c.Select != "" }) {
					data = filtered(firstInts(n), func(int) bool { return true }) // a condition leaves data as it is
				}
			case 1:
				name := rapid.SampledFrom([]string{"data", "DATA", "level0"}).Draw(t, "name")
				subset.Where = append(subset.Where, spec.Condition{Select: name + " " + text})
				data = filtered(data, func(i int) bool { return keep[i] && below(i) })
				slices.Reverse(data)
				data = append(data, data...)
				meet(data)
			default:
				subset.Where = append(subset.Where, spec.Condition{Column: "v", Op: "<", Value: json.RawMessage(text)})
				meet(filtered(firstInts(n), below))
			}
		}
		want := []uint32{}
		for i, left := range keep {
			if left {
				want = append(want, uint32(i))
			}
		}
		got, err := selectRows(t.Context(), table, subset, resources.Options{})
		if err != nil || (got == nil) != (len(subset.Where) == 0) || got != nil && !slices.Equal(got, want) {
			t.Fatalf("%v, %v; want %v", got, err, want)
		}
	})
}

func firstInts(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

func filtered(list []int, some func(i int) bool) (out []int) {
	for _, i := range list {
		if some(i) {
			out = append(out, i)
		}
	}
	return out
}

// TestConditionsRefused: a query of another table, a result without rows of samples and a dataset without columns are
// refused.
func TestConditionsRefused(t *testing.T) {
	tables.RegisterSQL(fewer{})
	defer tables.RegisterSQL(nil)
	ints := func(values ...int64) *tables.Vector {
		return tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, values, nil)
	}
	table := inMemory(2, 0, nil)
	if _, err := selectRows(t.Context(), table, &spec.Subset{Where: []spec.Condition{{SQL: "1"}}},
		resources.Options{}); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a dataset without columns: %v", err)
	}
	table.store = withData{table.store, tables.FromVectors([]string{"v"}, []*tables.Vector{ints(1, 2)})}
	for _, c := range []spec.Condition{{Select: "other 1"}, {SQL: "x"}, {Select: "data x"}, {Concat: []spec.Group{{}}},
		{Datetime: "2020", Level: 1}} {
		if _, err := selectRows(t.Context(), table, &spec.Subset{Where: []spec.Condition{c}},
			resources.Options{}); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	s := NewSelector(table, nil, resources.Options{})
	s.Keep = []bool{true, false}
	stop := errors.New("stop")
	broken := tables.New(1, tables.FromVectors([]string{rowColumn}, []*tables.Vector{ints(0)}).Columns(),
		func(context.Context, int) (*tables.Vector, error) { return nil, stop })
	if _, err := s.named(t.Context(), broken); !errors.Is(err, stop) {
		t.Errorf("rows that cannot be read: %v", err)
	}
	for name, c := range map[string]struct {
		column string
		values *tables.Vector
		ok     bool
	}{
		"row 0": {rowColumn, ints(0, 0), true}, "a row that is not left": {rowColumn, ints(1), false},
		"row -1": {rowColumn, ints(-1), false}, "a row beyond": {rowColumn, ints(2), false},
		"no rows": {"v", ints(0), false},
		"null": {rowColumn, tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, []int64{0}, []bool{true}),
			false},
		"a string": {rowColumn, tables.NewStrings([]string{"0"}, nil), false},
	} {
		samples, err := s.named(t.Context(), tables.FromVectors([]string{c.column}, []*tables.Vector{c.values}))
		if c.ok != (err == nil) || !c.ok && fault.KindOf(err) != fault.Unsupported ||
			c.ok && !slices.Equal(samples, []int32{0, 0}) {
			t.Errorf("%s: %v, %v", name, samples, err)
		}
	}
}

// withData is a store with a table for queries.
type withData struct {
	Store
	data *tables.Table
}

func (s withData) Data(context.Context) (*tables.Table, error) { return s.data, nil }

// idStore is a store of samples with some ids.
type idStore struct {
	*stored
	ids []string
}

func (s idStore) ScanIDs(_ context.Context, visit func(row int64, id string) error) error {
	for i, id := range s.ids {
		if err := visit(int64(i), id); err != nil {
			return err
		}
	}
	return nil
}

// levels are the levels of a container with ids.
type levels struct{ Levels }

func (levels) IDColumn() string { return "id" }

// TestSamplesNamedByIDs: a result names samples of containers by their ids, unless several samples have one.
func TestSamplesNamedByIDs(t *testing.T) {
	ids := []string{"a", "b", "b", "c", "d"}
	table := New(idStore{&stored{n: len(ids)}, ids})
	s := NewSelector(table, levels{}, resources.Options{})
	s.Keep = []bool{true, true, true, true, false}
	for _, c := range []struct {
		names []string
		nulls []bool
		want  []int32 // nil: refused
	}{
		{[]string{"c", "a", "c"}, nil, []int32{3, 0, 3}}, {[]string{"b"}, nil, nil}, {[]string{"d"}, nil, nil},
		{[]string{"e"}, nil, nil}, {[]string{"a"}, []bool{true}, nil},
	} {
		result := tables.FromVectors([]string{"id"}, []*tables.Vector{tables.NewStrings(c.names, c.nulls)})
		got, err := s.named(t.Context(), result)
		if (err == nil) != (c.want != nil) || err == nil && !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, %v", c.names, got, err)
		}
	}
	for _, column := range []string{"x", "id"} {
		vector := tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, []int64{0}, nil)
		if _, err := s.named(t.Context(), tables.FromVectors([]string{column}, []*tables.Vector{vector})); err == nil {
			t.Errorf("a result with the column %s of numbers", column)
		}
	}
	stop := errors.New("stop")
	table.base = &stored{n: 5, err: stop}
	vector := tables.NewStrings([]string{"a"}, nil)
	if _, err := s.named(t.Context(), tables.FromVectors([]string{"id"}, []*tables.Vector{vector})); !errors.Is(err,
		stop) {
		t.Errorf("ids that cannot be read: %v", err)
	}
}

// TestBoundsAgainstSlow: of the rows that are left, a box selects those whose bounds meet it or lie in it. A row
// without bounds is in no box; one whose CRS is not known is an error, which counts such rows.
func TestBoundsAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "rows")
		columns := map[string]listed{}
		for _, name := range append([]string{crsColumn}, spec.BoundsColumns...) {
			kind := catalog.Float
			if name == crsColumn {
				kind = catalog.Int
			}
			columns[name] = listed{kind, 0, make([]any, n)}
		}
		side := rapid.Float64Range(0, 9)
		box := [4]float64{side.Draw(t, "west"), side.Draw(t, "south")}
		box[2], box[3] = box[0]+side.Draw(t, "across")+0.5, box[1]+side.Draw(t, "down")+0.5
		within := rapid.Bool().Draw(t, "within")
		var dropped []string
		var want []uint32
		unknown, first := 0, -1
		for row := range n {
			x, y := side.Draw(t, "x"), side.Draw(t, "y")
			bounds := [4]float64{x, y, x + side.Draw(t, "w")/3 + 0.1, y + side.Draw(t, "h")/3 + 0.1}
			drop := rapid.IntRange(0, 4).Draw(t, "drop") == 0
			if drop {
				dropped = append(dropped, strconv.Itoa(row))
			}
			null := rapid.IntRange(0, 5).Draw(t, "null") == 0
			for i, name := range spec.BoundsColumns {
				if columns[name].values[row] = bounds[i]; null && i == row%4 {
					columns[name].values[row] = nil
				}
			}
			code := rapid.SampledFrom([]any{int64(4326), int64(4326), int64(4326), int64(4326), nil, int64(999999)}).
				Draw(t, "epsg")
			columns[crsColumn].values[row] = code
			switch {
			case drop || null:
			case code != any(int64(4326)):
				if unknown++; unknown == 1 {
					first = row
				}
			case within && box[0] <= bounds[0] && box[1] <= bounds[1] && bounds[2] <= box[2] && bounds[3] <= box[3],
				!within && box[0] <= bounds[2] && box[1] <= bounds[3] && bounds[0] <= box[2] && bounds[1] <= box[3]:
				want = append(want, uint32(row))
			}
		}
		table := inMemory(n, 0, columns)
		names := slices.Clone(spec.BoundsColumns)
		vectors := make([]*tables.Vector, len(names))
		for i := range vectors {
			vectors[i] = tables.NewNulls(tables.Type{Kind: tables.Int64, Bits: 64}, n)
		}
		table.store = withData{table.store, tables.FromVectors(names, vectors)}
		s := NewSelector(table, nil, resources.Options{})
		if err := s.without(t.Context(), dropped); err != nil {
			t.Fatal(err)
		}
		err := s.near(t.Context(), &spec.Condition{BBox: &box, Within: within})
		if unknown > 0 {
			count := fmt.Sprintf("against %d of the rows", unknown)
			if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), count) ||
				!strings.Contains(err.Error(), fmt.Sprintf("of row %d", first)) {
				t.Fatalf("%d rows, the first %d, have no CRS: %v", unknown, first, err)
			}
			return
		}
		got, _ := s.rows()
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v, %v; want %v", got, err, want)
		}
		delete(columns, crsColumn)
		err = NewSelector(table, nil, resources.Options{}).near(t.Context(), &spec.Condition{BBox: &box})
		if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "no column epsg") {
			t.Fatalf("bounds without a CRS: %v", err)
		}
	})
}

// TestWeightsOfADataset: weights are of a dataset with as many rows and the same ids below one directory, in their
// order. Coverage counts no classes.
func TestWeightsOfADataset(t *testing.T) {
	named := func(ids ...string) *Table { return New(idStore{&stored{n: len(ids)}, ids}) }
	table := named("/a/b/x/1", "/a/b/y/1", "/a/b/z")
	samples, err := SamplesOf(t.Context(), table)
	if err != nil || len(samples) != 32 {
		t.Fatal(samples, err)
	}
	same := func(ids ...string) bool {
		other, err := SamplesOf(t.Context(), named(ids...))
		return err == nil && other == samples
	}
	if !same("x/1", "y/1", "z") || !same("/c/x/1", "/c/y/1", "/c/z") || same("/a/b/y/1", "/a/b/x/1", "/a/b/z") ||
		same("x/1", "y/1") || same("x/2", "y/1", "z") || same("x/1y/1", "z") || same("q/x/1", "y/1", "z") {
		t.Error("a digest of other samples, or other ones of the same")
	}
	if other, _ := SamplesOf(t.Context(), named("a/xb", "a/xc")); other == "" || same("a/xb", "a/xc") {
		t.Error("parts of names are taken for a directory")
	}
	for name, c := range map[string]struct {
		rows     int
		samples  string
		classes  []float64
		opens    bool
		coverage bool
	}{
		"of it": {3, samples, nil, true, true}, "of no ids": {3, "", nil, true, true},
		"of classes": {3, samples, []float64{1}, true, false}, "of fewer rows": {2, samples, nil, false, false},
		"of others": {3, strings.Repeat("0", 32), nil, false, false},
	} {
		head := WeightsHeader{Version: 1, Rows: int64(c.rows), CellHeight: 1, CellWidth: 1, Field: "x",
			Samples: c.samples,
			Classes: c.classes}
		cells := make([]uint32, 1<<16)
		for i := range cells {
			cells[i] = 1
		}
		file := weightsFile(head, slices.Repeat([]cellCounts{{1 << 8, 1 << 8, cells}}, c.rows)...)
		o := resources.Options{Opener: folder.OneFile(file)}.WithDefaults()
		weights, err := OpenWeights(t.Context(), "w", o, table)
		if (err == nil) != c.opens || err != nil && fault.KindOf(err) != fault.Unsupported ||
			err == nil && weights.Rows != int64(c.rows) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := OpenCoverage(t.Context(), "w", o, table); (err == nil) != c.coverage {
			t.Errorf("%s as coverage: %v", name, err)
		}
	}
	broken := resources.Options{Opener: folder.OneFile("x")}.WithDefaults()
	if _, err := OpenCoverage(t.Context(), "w", broken, table); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("no weights: %v", err)
	}
}

// TestCoveredWindowsAgainstSlow: a row is covered if each size of random windows, here of whole cells, has one with
// few enough pixels without data.
func TestCoveredWindowsAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, valid := drawCounts(t)
		limit := float64(rapid.IntRange(0, 4).Draw(t, "limit")) / 4
		s := &shuffle.Sampler{Kind: shuffle.RandomWindow{}, MaxNoData: &limit, AlignY: 1, AlignX: 1,
			H: w.CellHeight * rapid.IntRange(1, 2).Draw(t, "h"), W: w.CellWidth * rapid.IntRange(1, 2).Draw(t, "w")}
		sizes := [][2]int{{s.H, s.W}}
		for range rapid.IntRange(0, 2).Draw(t, "sides") {
			side := w.CellHeight * w.CellWidth * rapid.IntRange(1, 2).Draw(t, "side")
			s.Sides = append(s.Sides, side)
			sizes = append(sizes, [2]int{side, side})
		}
		want := []uint32{}
		for row, pixels := range valid {
			all := len(pixels) > 0
			for _, size := range sizes {
				found := false
				for y := 0; len(pixels) > 0 && (y == 0 || y+size[0] <= len(pixels)); y += s.AlignY {
					for x := 0; x == 0 || x+size[1] <= len(pixels[0]); x++ {
						n := missing(pixels, shuffle.Box{Y: y, X: x, H: size[0], W: size[1]})
						found = found || float64(n) <= limit*float64(size[0]*size[1])
					}
				}
				all = all && found
			}
			if all {
				want = append(want, uint32(row))
			}
		}
		got, err := w.Covered(t.Context(), s, w.Rows, func(i int64) int64 { return i })
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("rows %v, want %v; %v", got, want, err)
		}
	})
}
