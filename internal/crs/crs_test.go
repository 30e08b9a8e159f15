package crs

import (
	"encoding/json"
	"math"
	"os"
	"testing"
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
	worst := map[string]float64{}
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
		q, _ := split(c.line)
		worst[q.kind] = max(worst[q.kind], off)
		if !(off < 1e-3) {
			t.Errorf("%s: %v is %v, want %v: %g m", c.line, p[0], xy[0], v[3:], off)
			continue
		}
		c.Inverse(xy, xy)
		dlon := math.Remainder(xy[0][0]-v[1], 360) * math.Cos(v[2]*math.Pi/180)
		if back := math.Hypot(dlon, xy[0][1]-v[2]) * 111e3; !(back < 1e-3) {
			t.Errorf("%s: %v comes back as %v: %g m", c.line, p[0], xy[0], back)
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
			t.Errorf("%s: %v is %v, want %v: %g m", c.line, v[1:3], xy[0], v[3:], off)
		}
		c.Inverse(xy, xy)
		if off := math.Hypot(xy[0][0]-v[1], xy[0][1]-v[2]) * 111e3; !(off < 0.01) {
			t.Errorf("EPSG:%v: %v comes back as %v: %g m", v[0], v[1:3], xy[0], off)
		}
	}
}

// TestNotKnown: names that are no CRS, or one that the package cannot transform, are refused.
func TestNotKnown(t *testing.T) {
	for _, code := range []int{0, -1, 1, 5513, 5514, 32600, 4978, 32767, math.MaxInt} {
		if c, ok := ByCode(code); ok {
			t.Errorf("EPSG:%d: %s", code, c.line)
		}
	}
}
