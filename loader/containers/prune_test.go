package containers_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestConditionsPruneFiles: a file of a TACOLLECTION that a condition excludes is not opened,
// unless another condition needs the samples of all files.
func TestConditionsPruneFiles(t *testing.T) {
	whole := filepath.Join(corpus.Testdata(t), "extents", "starts")
	without := t.TempDir() // a.tacozip, the samples of 2020, is not there
	for _, name := range []string{"TACOLLECTION.json", "b.tacozip"} {
		b, err := os.ReadFile(filepath.Join(whole, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(without, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	in2021 := loader.Condition{Datetime: "2021-01-01/2021-12-31"}
	box := [4]float64{-103, -1, -99, 2}
	for _, c := range []struct {
		name   string
		where  []loader.Condition
		want   []string // ids; nil: none is selected
		opened bool     // a.tacozip is
	}{
		{"no condition", nil, []string{"a0", "a1", "b0", "b1"}, true},
		{"time", []loader.Condition{in2021}, []string{"b0", "b1"}, false},
		{"place", []loader.Condition{{BBox: &box}}, []string{"b0", "b1"}, false},
		{"time and a condition on a column", []loader.Condition{in2021, {SQL: "id <> 'b0'"}}, []string{"b1"}, false},
		{"time and a comparison", []loader.Condition{condition("id", "==", `"b0"`), in2021}, []string{"b0"}, false},
		{
			"the second of two conditions on time",
			[]loader.Condition{{Datetime: "2020-01-01/.."}, in2021}, []string{"b0", "b1"}, false,
		},
		{
			"time after a query of all samples",
			[]loader.Condition{{Select: "SELECT id FROM data ORDER BY id LIMIT 2"}, in2021}, nil, true,
		},
		{
			"time before a query",
			[]loader.Condition{in2021, {Select: "SELECT id FROM data ORDER BY id LIMIT 1"}},
			[]string{"b0"}, true,
		},
		{"footprints", []loader.Condition{{BBox: &box, Column: "nothing"}}, nil, true},
	} {
		ids := func(dir string) ([]string, error) {
			spec := loader.Spec{
				Source: filepath.Join(dir, "TACOLLECTION.json"), BatchSize: 4,
				Subset: loader.Subset{Where: c.where}, Fields: []loader.Field{{Name: "id"}},
			}
			e, err := open(t, spec, loader.Options{})
			if err != nil {
				return nil, err
			}
			var got []string
			b := first(t, e)
			for i, id := range b.Tensors[0].Texts() {
				if b.Valid[i] {
					got = append(got, id)
				}
			}
			return got, nil
		}
		got, err := ids(whole)
		if !slices.Equal(got, c.want) || (c.want == nil) != (err != nil) {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
		_, err = ids(without)
		if opened := err != nil && strings.Contains(err.Error(), "a.tacozip"); opened != c.opened {
			t.Errorf("%s: a.tacozip was opened: %v, want %v: %v", c.name, opened, c.opened, err)
		}
	}
}
