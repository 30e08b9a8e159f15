package containers

import (
	"testing"

	"github.com/chaski-eo/chaski/loader/spec"
)

// TestFiltersThatFilesAreRuledOutBy: conditions on place and time rule files out, unless another one looks at several
// samples.
func TestFiltersThatFilesAreRuledOutBy(t *testing.T) {
	box := &[4]float64{1, 2, 3, 4}
	place, when := spec.Condition{BBox: box, Column: "g", Within: true},
		spec.Condition{Datetime: "2020-01-01/2020-02-01", Column: "t"}
	times := func(src spec.Source) spec.Source { src.Where = []spec.Condition{when}; return src }
	for name, src := range map[string]spec.Source{
		"ids":    times(spec.Source{Subset: spec.Subset{IDList: "ids.txt"}}),
		"tables": times(spec.Source{Subset: spec.Subset{Tables: []spec.SideTable{{Path: "a.csv"}}}}),
	} {
		if got := fileFilters(&src); got != nil {
			t.Errorf("with %s: %+v", name, got)
		}
	}
	for name, c := range map[string]struct {
		where []spec.Condition
		want  int
	}{
		"none": {nil, 0}, "place and time": {[]spec.Condition{place, {SQL: "x"}, when}, 2},
		"after a query": {[]spec.Condition{{Select: "x"}, place}, 0}, "before a query": {[]spec.Condition{place,
			{Select: "x"}}, 0},
		"of groups": {[]spec.Condition{{Concat: []spec.Group{}}, place}, 0},
		"no time":   {[]spec.Condition{place, {Datetime: "spring"}}, 0},
	} {
		got := fileFilters(&spec.Source{Subset: spec.Subset{Where: c.where}})
		if len(got) != c.want {
			t.Errorf("%s: %d filters", name, len(got))
		}
		if c.want == 2 && (got[0].Geometry != "g" || got[0].Time != "" || got[1].Time != "t" || got[1].Box != nil) {
			t.Errorf("%+v", got)
		}
	}
}
