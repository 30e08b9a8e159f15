package crs

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/internal/epsg"
)

// TestBoxes: boxes meet and contain the rasters that PROJ says they do, by many points of both.
func TestBoxes(t *testing.T) {
	b, err := os.ReadFile("testdata/boxes.json")
	var cases [][6]any
	if err == nil {
		err = json.Unmarshal(b, &cases)
	}
	if err != nil || len(cases) == 0 {
		t.Fatal(err)
	}
	sides := func(v any) (s [4]float64) {
		for i, x := range v.([]any) {
			s[i] = x.(float64)
		}
		return s
	}
	for _, c := range cases {
		box, err := NewBox(sides(c[2]), int(c[3].(float64)))
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		r, err := box.In(int(c[0].(float64)))
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		s := sides(c[1])
		if got := r.Meets(s[0], s[1], s[2], s[3]); got != c[4] {
			t.Errorf("EPSG:%v %v, box %v of EPSG:%v: meets %v, want %v", c[0], c[1], c[2], c[3], got, c[4])
		}
		if got := r.Holds(s[0], s[1], s[2], s[3]); got != c[5] {
			t.Errorf("EPSG:%v %v, box %v of EPSG:%v: holds %v, want %v", c[0], c[1], c[2], c[3], got, c[5])
		}
	}
}

// TestAntimeridian: the box (170, -20, -170, -10) crosses the antimeridian; points and whole worlds
// are boxes too.
func TestAntimeridian(t *testing.T) {
	for _, c := range []struct {
		box  [4]float64
		lon  float64
		want bool
	}{
		{[4]float64{170, -20, -170, -10}, 0, false},
		{[4]float64{170, -20, -170, -10}, 179.5, true},
		{[4]float64{170, -20, -170, -10}, -179.9, true},
		{[4]float64{170, -20, -170, -10}, 180.1, true},
		{[4]float64{170, -20, -170, -10}, 169.9, false},
		{[4]float64{170, -20, 180, -10}, -180, true}, // one meridian
		{[4]float64{170, -20, 190, -10}, -175, true},
		{[4]float64{350, -20, 10, -10}, 0, true},
		{[4]float64{350, -20, 10, -10}, 20, false},
		{[4]float64{-180, -90, 180, 90}, 200, true},
		{[4]float64{0, -90, 360, 90}, -77, true},
		{[4]float64{5, -15, 5, -15}, 5, true}, // a point
		{[4]float64{5, -15, 5, -15}, 5.1, false},
		{[4]float64{180, -20, -180, -10}, 180, true}, // no width
		{[4]float64{180, -20, -180, -10}, 0, false},
	} {
		b, err := NewBox(c.box, 0)
		if err != nil {
			t.Error(err)
			continue
		}
		r, err := b.In(4326)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Meets(c.lon, -15, c.lon, -15); got != c.want {
			t.Errorf("%v at %v: %v, want %v", c.box, c.lon, got, c.want)
		}
		in := false
		for _, s := range b.Rectangles() {
			in = in || c.lon >= s[0] && c.lon <= s[2]
		}
		if in != c.want {
			t.Errorf("rectangles of %v at %v: %v, want %v", c.box, c.lon, in, c.want)
		}
	}
}

func TestBadBoxes(t *testing.T) {
	for want, c := range map[string]struct {
		box  [4]float64
		epsg int
	}{
		"south":             {[4]float64{0, 10, 5, 0}, 0},
		"its south":         {[4]float64{170, -10, -170, -20}, 0}, // not the 340 degrees between
		"finite":            {[4]float64{math.NaN(), 0, 1, 1}, 0},
		"bbox is (+Inf":     {[4]float64{math.Inf(1), 0, 1, 1}, 0},
		"latitudes":         {[4]float64{0, -91, 5, 0}, 0},
		"longitudes":        {[4]float64{-181, 0, 5, 1}, 0},
		"say bbox_crs":      {[4]float64{500000, 0, 600000, 10}, 0},
		"its west":          {[4]float64{600000, 0, 500000, 10}, 32633},
		"-180 to 180":       {[4]float64{-180, 0, 181, 10}, 0},
		"greater than its ": {[4]float64{0, 5, 1, 4}, 32633},
	} {
		if _, err := NewBox(c.box, c.epsg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", c.box, err, want)
		}
	}
	// Corners may be swapped, as in tacoreader.
	b, err := NewBox([4]float64{30, 40, -30, -40}, 0)
	if err != nil || b.West != -30 || b.South != -40 || b.East != 30 || b.North != 40 {
		t.Error(b, err)
	}
}

// TestNotComparable: coordinates are not transformed from or to unknown CRSs.
func TestNotComparable(t *testing.T) {
	krovak, err := NewBox([4]float64{-600000, -1100000, -500000, -1000000}, 5514)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := krovak.In(5514); err != nil || !r.Meets(-550000, -1050000, -540000, -1040000) || r.Meets(0, 0, 1, 1) {
		t.Error(err)
	}
	if _, err := krovak.In(32633); err == nil || !strings.Contains(err.Error(), "bbox_crs is EPSG:5514") {
		t.Error(err)
	}
	here, _ := NewBox([4]float64{10, 50, 11, 51}, 0)
	if _, err := here.In(5514); err == nil || !strings.Contains(err.Error(), "EPSG:5514") {
		t.Error(err)
	}
}

// TestPolesOfShiftedDatums: on maps that draw a pole as a line, a box with that pole contains the
// points of vectors.json that lie in it, also where the datum is shifted. vectors.json has PROJ's
// points, with longitude and latitude on the CRS's own datum.
func TestPolesOfShiftedDatums(t *testing.T) {
	b, err := os.ReadFile("testdata/vectors.json")
	var points [][5]float64
	if err == nil {
		err = json.Unmarshal(b, &points)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range points {
		code, lon, x, y := int(p[0]), p[1], p[3], p[4]
		c, ok := ByCode(code)
		if !ok || c.datum == nil || epsg.Projection(code) != "aea" || math.Abs(p[2]) > 89 {
			continue
		}
		for name, sides := range map[string][4]float64{
			"the world":  {-180, -90, 180, 90},
			"half of it": {math.Remainder(lon-89, 360), -90, math.Remainder(lon+89, 360), 90},
		} {
			box, err := NewBox(sides, 0)
			if err != nil {
				t.Fatal(err)
			}
			r, err := box.In(code)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Meets(x, y, x, y) {
				t.Errorf("EPSG:%d: %s does not meet %v", code, name, p)
			}
			n++
		}
	}
	if n < 10 {
		t.Errorf("%d boxes", n)
	}
}
