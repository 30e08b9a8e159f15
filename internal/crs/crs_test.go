package crs

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/chaski-eo/chaski/internal/epsg"
)

func vectors(t *testing.T, name string) (list [][5]float64) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil || len(list) == 0 {
		t.Fatal(err)
	}
	return list
}

// TestPROJ: every CRS agrees with PROJ to 1 mm, forwards and back.
func TestPROJ(t *testing.T) {
	worst := map[string]float64{} // by projection
	for _, v := range vectors(t, "vectors.json") {
		c, ok := ByCode(int(v[0]))
		if !ok {
			t.Errorf("EPSG:%v is not known", v[0])
			continue
		}
		c = c.OwnDatum()
		p := []Point{{v[1], v[2]}}
		xy := make([]Point, 1)
		c.Forward(xy, p)
		off := math.Hypot(xy[0][0]-v[3], xy[0][1]-v[4])
		if !c.Geographic() {
			off *= c.unit
		}
		kind := epsg.Projection(c.code)
		worst[kind] = max(worst[kind], off)
		if !(off < 1e-3) {
			t.Errorf("%s: %v is %v, want %v: %g m", c, p[0], xy[0], v[3:], off)
			continue
		}
		c.Inverse(xy, xy)
		dlon := math.Remainder(xy[0][0]-v[1], 360) * math.Cos(v[2]*math.Pi/180)
		if back := math.Hypot(dlon, xy[0][1]-v[2]) * 111e3; !(back < 1e-3) {
			t.Errorf("%s: %v comes back as %v: %g m", c, p[0], xy[0], back)
		}
	}
	for k, m := range worst {
		t.Logf("%s: %.3g m", k, m)
	}
}

// TestShifted: points of WGS 84 in CRSs with another datum agree with PROJ, by the same parameters.
func TestShifted(t *testing.T) {
	for _, v := range vectors(t, "shifted.json") {
		c, ok := ByCode(int(v[0]))
		if !ok {
			t.Errorf("EPSG:%v is not known", v[0])
			continue
		}
		xy := []Point{{v[1], v[2]}}
		c.Forward(xy, xy)
		if off := math.Hypot(xy[0][0]-v[3], xy[0][1]-v[4]); !(off < 0.01) {
			t.Errorf("%s: %v is %v, want %v: %g m", c, v[1:3], xy[0], v[3:], off)
		}
		c.Inverse(xy, xy)
		if off := math.Hypot(xy[0][0]-v[1], xy[0][1]-v[2]) * 111e3; !(off < 0.01) {
			t.Errorf("EPSG:%v: %v comes back as %v: %g m", v[0], v[1:3], xy[0], off)
		}
	}
}

// TestWKT: well-known text without codes yields the CRS that it was written from, or one that has
// PROJ's point at the same place.
func TestWKT(t *testing.T) {
	b, err := os.ReadFile("testdata/wkt.json")
	var cases [][6]any
	if err == nil {
		err = json.Unmarshal(b, &cases)
	}
	if err != nil || len(cases) == 0 {
		t.Fatal(err)
	}
	other := 0
	for _, c := range cases {
		got, ok := ByName(c[1].(string))
		if !ok {
			t.Errorf("EPSG:%v is not known by %s", c[0], c[1])
			continue
		}
		if got.Code() == int(c[0].(float64)) {
			continue
		}
		other++
		p := []Point{{c[2].(float64), c[3].(float64)}}
		got.OwnDatum().Forward(p, p)
		if off := math.Hypot(p[0][0]-c[4].(float64), p[0][1]-c[5].(float64)); !(off < 1e-2) {
			t.Errorf("EPSG:%v is EPSG:%d by %s: %g m", c[0], got.Code(), c[1], off)
		}
	}
	t.Logf("%d of %d are another CRS with the same parameters", other, len(cases))
}

// TestTable: each line of the table of package epsg is a CRS that can be projected.
func TestTable(t *testing.T) {
	systems := 0
	for code := range 200_000 {
		if epsg.Projection(code) == "" {
			continue
		}
		if systems++; !known(code) {
			t.Errorf("EPSG:%d cannot be projected", code)
		}
	}
	if systems < 6000 {
		t.Errorf("%d systems", systems)
	}
}

func known(code int) bool {
	_, ok := ByCode(code)
	return ok
}

// TestNotKnown: names that are no CRS, or one that the package cannot transform, are refused.
func TestNotKnown(t *testing.T) {
	for _, code := range []int{0, -1, 1, 5513, 5514, 32600, 4978, 32767, math.MaxInt} {
		if c, ok := ByCode(code); ok {
			t.Errorf("EPSG:%d is %s", code, c)
		}
	}
}
