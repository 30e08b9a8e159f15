package survey

import (
	"reflect"
	"testing"

	"github.com/chaski-eo/chaski/loader/spec"
)

// TestSaidOf: lists of nodata follow the bands that a field picks, by number or by name, and a container may name fewer
// bands than a file has.
func TestSaidOf(t *testing.T) {
	lists := [][]spec.Float{{1}, {2, 3}}
	for name, c := range map[string]struct {
		field  spec.Field
		behind int
		names  []string
		want   [][]float64
	}{
		"nothing said":  {spec.Field{}, 0, nil, nil},
		"one for all":   {spec.Field{NoData: lists[1:]}, 0, nil, [][]float64{{2, 3}, {2, 3}, {2, 3}}},
		"by number":     {spec.Field{NoData: lists, Bands: []int{2, 0}}, 0, nil, [][]float64{{2, 3}, nil, {1}}},
		"behind others": {spec.Field{NoData: lists, Bands: []int{2, 0}}, 2, nil, [][]float64{{1}, nil, nil}},
		"by name": {spec.Field{NoData: lists, BandNames: []string{"c", "a"}}, 0,
			[]string{"a", "b", "c"}, [][]float64{{2, 3}, nil, {1}}},
		"too few names": {spec.Field{NoData: lists, BandNames: []string{"b", "a"}}, 0,
			[]string{"a", "b"}, [][]float64{{2, 3}, {1}, nil}},
		"too few lists": {spec.Field{NoData: lists, Bands: []int{2, 0, 1}}, 0, nil, [][]float64{{2, 3}, nil, {1}}},
	} {
		got, err := saidOf(&c.field, c.behind, 3, c.names)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
	if _, err := saidOf(&spec.Field{NoData: lists}, 0, 3, nil); err == nil {
		t.Error("two lists for three bands are no error")
	}
}
