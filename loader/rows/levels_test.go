package rows

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// container is a container of two levels, whose conditions leave some samples.
type container struct {
	levels
	top, below *tables.Table
	near       []int // the samples that a condition on place or time leaves
	grouped    []int32
	filter     spacetime.Filter // of the last condition on place or time
	err        error
}

func (c *container) Top() *tables.Table { return c.top }

func (c *container) Near(_ context.Context, f spacetime.Filter) ([]int, error) {
	c.filter = f
	return c.near, c.err
}

func (c *container) Concat(_ context.Context, s *Selector, groups []spec.Group) error {
	s.Meet(slices.Values(c.grouped[:len(groups)]))
	return c.err
}

func (c *container) SQLTable(_ context.Context, name string) (*tables.Table, error) {
	if name == "level1" {
		return c.below, c.err
	}
	return nil, fault.New(fault.NotFound, "query", "no table %q", name)
}

// TestConditionsOnContainers: a container answers conditions on place and time and those of groups, and a SELECT sees
// the tables of its levels.
func TestConditionsOnContainers(t *testing.T) {
	tables.RegisterSQL(fewer{})
	defer tables.RegisterSQL(nil)
	ints := func(values ...int64) *tables.Vector {
		return tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, values, nil)
	}
	names := func(values ...string) *tables.Vector { return tables.NewStrings(values, nil) }
	top := tables.FromVectors([]string{"id", "v"}, []*tables.Vector{names("0", "1", "2", "3"), ints(3, 2, 1, 0)})
	below := tables.FromVectors([]string{"id", "v"}, []*tables.Vector{names("3", "1", "0", "9"), ints(5, 1, 7, 8)})
	table := inMemory(4, 0, map[string]listed{"n": {catalog.Int, 0, []any{int64(1), int64(1), int64(0), int64(1)}}})
	near := spec.Condition{Datetime: "2020-01-01", Column: "when", Level: 1}
	group := spec.Condition{Concat: make([]spec.Group, 2)}
	compared := spec.Condition{Column: "n", Op: "==", Value: json.RawMessage("1")}
	stop := errors.New("stop")
	for what, c := range map[string]struct {
		where []spec.Condition
		err   error // of the container
		want  []uint32
	}{
		"place":             {[]spec.Condition{near}, nil, []uint32{1, 3}},
		"groups":            {[]spec.Condition{group}, nil, []uint32{0, 3}},
		"place and groups":  {[]spec.Condition{near, group}, nil, []uint32{3}},
		"a comparison":      {[]spec.Condition{compared, group}, nil, []uint32{0, 3}},
		"a condition":       {[]spec.Condition{{SQL: "2"}}, nil, []uint32{2, 3}},
		"level 0":           {[]spec.Condition{{Select: "level0 2"}}, nil, []uint32{2, 3}},
		"level 1":           {[]spec.Condition{{Select: "level1 6"}}, nil, []uint32{1, 3}},
		"level 1 after all": {[]spec.Condition{near, {Select: "level1 6"}, compared}, nil, []uint32{1, 3}},
		"one not left":      {[]spec.Condition{group, {Select: "level1 6"}}, nil, nil},
		"one not there":     {[]spec.Condition{{Select: "level1 9"}}, nil, nil},
		"no such level":     {[]spec.Condition{{Select: "level2 6"}}, nil, nil},
		"place fails":       {[]spec.Condition{near}, stop, nil},
		"groups fail":       {[]spec.Condition{group}, stop, nil},
		"level 1 fails":     {[]spec.Condition{{Select: "level1 6"}}, stop, nil},
	} {
		levels := &container{top: top, below: below, near: []int{1, 3}, grouped: []int32{3, 0, 1}, err: c.err}
		s := NewSelector(table, levels, resources.Options{})
		err := s.Apply(t.Context(), &spec.Subset{Where: c.where})
		if (err == nil) != (c.want != nil) || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if got, _ := s.rows(); err == nil && !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
		if f := levels.filter; c.where[0].Level == 1 && (f.Time != "when" || f.Level != 1 || f.Times == nil) {
			t.Errorf("%s: the container looks for %+v", what, f)
		}
	}
}

// TestLargestGrid: a grid of 2^28 windows is accepted if memory has 4 bytes for each, and 8 for each row; one more
// window is refused, in the same row or in another one.
func TestLargestGrid(t *testing.T) {
	limit := 0.5
	limited := func(memory int64, sizes ...[2]int) (held int64, err error) {
		account, err := budget.New(memory).Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer account.Close()
		grid := &shuffle.Grid{H: 1, W: 1, StrideY: 1, StrideX: 1, AlignY: 1, AlignX: 1}
		w := Weights{Sizes: make([]byte, 8*len(sizes))} // no row could be counted
		_, err = w.LimitGrid(budget.With(t.Context(), account), &shuffle.Sampler{Kind: grid, MaxNoData: &limit},
			int64(len(sizes)), func(i int64) (row int64, h, w int) { return i, sizes[i][0], sizes[i][1] })
		return account.Held(), err
	}
	const side = 1 << 14
	for _, c := range []struct {
		sizes [][2]int
		part  string // of the error
	}{
		{[][2]int{{side, side}}, "memory"}, {[][2]int{{side, side / 2}, {side, side / 2}}, "memory"},
		{[][2]int{{1, side*side + 1}}, "dataset"}, {[][2]int{{side, side}, {1, 1}}, "dataset"},
		{[][2]int{{1, 1}, {1 << 31, 1 << 31}}, "dataset"},
	} {
		_, err := limited(1, c.sizes...)
		var cause *fault.Error
		if !errors.As(err, &cause) || cause.Kind != fault.Limit || cause.Part != c.part {
			t.Errorf("%v: %v, want the limit of %s", c.sizes, err, c.part)
		}
	}
	if held, err := limited(1<<20, [2]int{3, 5}, [2]int{2, 1}); err != nil || held != 4*(3*5+2*1)+8*2 {
		t.Errorf("17 windows of 2 rows take %d bytes, %v", held, err)
	}
}

// TestFieldsOfACatalog: a spec with the settings of one field has a field with these settings for each field of a
// catalog of pairs. Only the first has a validity mask, whose name is one tensor. A fill for labels and images is
// refused.
func TestFieldsOfACatalog(t *testing.T) {
	o := resources.Options{}.WithDefaults()
	dir := folder.Of(t, "a/1.tif", "a/2.tif", "b/1.tif", "b/2.tif")
	file := dir + "/pairs.parquet"
	folder.Index(t, file, build.Options{Fields: []catalog.Source{{Field: "image", Pattern: dir + "/a/{id}.tif"},
		{Field: "label", Pattern: dir + "/b/{id}.tif"}}}, dir)
	fill := spec.Float(3)
	all := func(change func(*spec.Field)) spec.Spec {
		s := spec.Spec{Source: file, BatchSize: 1, AllFields: true,
			Fields: []spec.Field{{Name: "one", Validity: "mask"}}}
		change(&s.Fields[0])
		return s.WithDefaults()
	}
	plain := all(func(*spec.Field) {})
	folderOf, mixture, none, one := plain, plain, plain, plain
	folderOf.Source, none.Source, one.AllFields = dir, dir+"/none.parquet", false
	inner := spec.Source{Weight: 1}
	inner.Sources, inner.Until = []spec.Source{{Source: file, Weight: 1}}, spec.UntilLongest
	mixture.Source, mixture.Sources, mixture.Until = "", []spec.Source{inner}, spec.UntilLongest
	for what, c := range map[string]struct {
		spec spec.Spec
		want string // the fields, or a part of the error
	}{
		"a catalog": {plain, "image label"}, "a directory": {folderOf, "one"}, "one field": {one, "one"},
		"no catalog": {none, "none.parquet"}, "a mixture of mixtures": {mixture, "image label"},
		"a column":       {all(func(f *spec.Field) { f.Column = "uri" }), "one"},
		"a pattern":      {all(func(f *spec.Field) { f.Pattern = "{id}" }), "one"},
		"a stack":        {all(func(f *spec.Field) { f.Columns = []string{"a", "b"} }), "one"},
		"shapes beside":  {all(func(f *spec.Field) { f.Vector = &spec.Vector{} }), "one"},
		"a fill":         {all(func(f *spec.Field) { f.DType, f.Fill = "", &fill }), "may be labels"},
		"of native":      {all(func(f *spec.Field) { f.DType, f.Fill = "native", &fill }), "may be labels"},
		"of integers":    {all(func(f *spec.Field) { f.DType, f.Fill = "uint8", &fill }), "may be labels"},
		"of floats":      {all(func(f *spec.Field) { f.DType, f.Fill = "float32", &fill }), "image label"},
		"a name twice":   {all(func(f *spec.Field) { f.Validity = "label" }), "label"},
		"native, scaled": {all(func(f *spec.Field) { f.DType, f.Fill, f.Normalize = "native", &fill, nil }), "labels"},
	} {
		got, err := WithOwnFields(t.Context(), c.spec, o)
		var names []string
		for _, f := range got.Fields {
			names = append(names, f.Name)
		}
		failed := err != nil && strings.Contains(err.Error(), c.want)
		if listed := err == nil && strings.Join(names, " ") == c.want; !failed && !listed || got.AllFields {
			t.Errorf("%s: %q, %v; want %s", what, names, err, c.want)
		}
		for i, f := range got.Fields {
			want := c.spec.Fields[0]
			if f.Name = want.Name; i > 0 {
				want.Validity = ""
			}
			a, _ := json.Marshal(f)
			b, _ := json.Marshal(want)
			if err == nil && string(a) != string(b) {
				t.Errorf("%s: field %d is %s, want %s", what, i, a, b)
			}
		}
	}
}
