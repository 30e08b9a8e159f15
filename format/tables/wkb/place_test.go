package wkb

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/crs"
)

// TestPlaceMeetsItsPoints: what prunes rows by their boxes leaves out no point of a place, up to its outline.
func TestPlaceMeetsItsPoints(t *testing.T) {
	const utm = 32632
	box, err := crs.NewBox([4]float64{390000, 5810000, 400000, 5820000}, utm)
	if err != nil {
		t.Fatal(err)
	}
	place, err := NewPlace(box)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := crs.ByCode(utm)
	points := []crs.Point{{390000, 5810000}, {400000, 5810000}, {390000, 5820000}, {400000, 5820000}}
	for i := 1; i < 100; i++ {
		points = append(points, crs.Point{390000 + 100*float64(i), 5810000 + 100*float64(i*37%100)})
	}
	c.Inverse(points, points)
	for _, p := range points {
		for _, turn := range []float64{-360, 0, 360} {
			if !place.Meets(Box{p[0] + turn, p[1], p[0] + turn, p[1]}) {
				t.Errorf("%v, turned by %v", p, turn)
			}
		}
	}
	for _, p := range points[4:] {
		if in, err := place.Match(pointOf(xy(p)), column.Within, nil); !in || err != nil {
			t.Errorf("%v within: %v, %v", p, in, err)
		}
	}
	if place.Meets(Box{-180, -90, 7, 90}) || place.Meets(Box{0, 53, 20, 54}) {
		t.Error("boxes beside the place meet it")
	}
}

// TestHoleAcross: a hole of a ring that crosses the antimeridian lies where it is drawn, on either side.
func TestHoleAcross(t *testing.T) {
	in := func(lon float64, rings ...[]xy) bool {
		t.Helper()
		box, err := crs.NewBox([4]float64{lon - 0.9, -1.9, lon + 0.9, 1.9}, 4326)
		if err != nil {
			t.Fatal(err)
		}
		place, err := NewPlace(box)
		if err != nil {
			t.Fatal(err)
		}
		got, err := place.Match(polygonOf(rings...), column.Intersects, nil)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for half, want := range map[float64]bool{89.75: false, 90.25: true} { // edges of less and of more than 180 degrees
		if got := in(179, rect(-half, -5, half, 5)); got != want || in(0, rect(-half, -5, half, 5)) == want {
			t.Errorf("%v degrees at 179: %v, want %v", 2*half, got, want)
		}
	}
	ring := []xy{{170, -10}, {-170, -10}, {-170, 10}, {170, 10}, {170, -10}}
	for _, hole := range [][]xy{rect(-176, -2, -174, 2), rect(174, -2, 176, 2)} {
		x := (hole[0][0] + hole[1][0]) / 2
		for lon, want := range map[float64]bool{x: false, -x: true} {
			if got := in(lon, ring, hole); got != want {
				t.Errorf("hole at %v, box at %v: %v", x, lon, got)
			}
		}
	}
}

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
