package wkb

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/crs"
)

// TestPlaces compares polygons around the antimeridian and the poles with shapely, after the package antimeridian cut
// them.
func TestPlaces(t *testing.T) {
	b, err := os.ReadFile("testdata/places.json")
	var cases [][5]any
	if err == nil {
		err = json.Unmarshal(b, &cases)
	}
	if err != nil || len(cases) == 0 {
		t.Fatal(err)
	}
	for _, c := range cases {
		var sides [4]float64
		for i, v := range c[1].([]any) {
			sides[i] = v.(float64)
		}
		box, err := crs.NewBox(sides, int(c[2].(float64)))
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPlace(box)
		if err != nil {
			t.Fatal(c, err)
		}
		g, err := AppendText(nil, c[0].(string))
		if err != nil {
			t.Fatal(err)
		}
		for rule, want := range map[column.Rule]any{column.Intersects: c[3], column.Within: c[4]} {
			if got, err := p.Match(g, rule, nil); got != want || err != nil {
				t.Errorf("%s in %v of EPSG:%v, rule %d: %v, %v, want %v", c[0], c[1], c[2], rule, got, err, want)
			}
			// As one of several, the shortcuts do not count.
			if got, err := p.Match(le().head(collection).count(1).with(g), rule, nil); got != want || err != nil {
				t.Errorf("as one of several, %s in %v of EPSG:%v, rule %d: %v, %v, want %v", c[0], c[1], c[2],
					rule, got, err, want)
			}
		}
	}
}
