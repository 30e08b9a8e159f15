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
	for name, c := range map[string]struct {
		where []spec.Condition
		want  int
	}{
		"none": {nil, 0}, "place and time": {[]spec.Condition{place, {SQL: "x"}, when}, 2},
		"after a query": {[]spec.Condition{{Select: "x"}, place}, 0}, "before a query": {[]spec.Condition{place,
			{Select: "x"}}, 0},
		"of groups": {[]spec.Condition{{Concat: []spec.Group{}}, place}, 0},
	} {
		got, err := fileFilters(&spec.Source{Subset: spec.Subset{Where: c.where}})
		if err != nil || len(got) != c.want {
			t.Errorf("%s: %d filters, %v", name, len(got), err)
		}
		if c.want == 2 && (got[0].Geometry != "g" || got[0].Time != "" || got[1].Time != "t" || got[1].Box != nil) {
			t.Errorf("%+v", got)
		}
	}
	spring := []spec.Condition{{Datetime: "spring"}}
	if _, err := fileFilters(&spec.Source{Subset: spec.Subset{Where: spring}}); err == nil {
		t.Error("a text that is no time is read as one")
	}
}
