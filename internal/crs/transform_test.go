package crs

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/epsg"
)

// modis is the sinusoidal grid of MODIS, which has no EPSG code.
var modis = epsg.Definition{Projection: "sinu", A: 6371007.181, Values: map[string]float64{}}

// of returns the CRS with a code, and that of MODIS for 0.
func of(t *testing.T, code int) *CRS {
	t.Helper()
	c, err := Lookup(code)
	if code == 0 {
		c, err = ByDefinition(modis)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// metres returns the distance of two points of a CRS.
func metres(c *CRS, a, b Point) float64 {
	if !c.Geographic() {
		return math.Hypot(a[0]-b[0], a[1]-b[1]) * c.unit
	}
	return math.Hypot(math.Remainder(a[0]-b[0], 360)*math.Cos(b[1]*math.Pi/180), a[1]-b[1]) * 111_320
}

// TestTransforms: points of the CRSs that Earth observation uses are where PROJ puts them in each other, to 1 mm.
func TestTransforms(t *testing.T) {
	b, err := os.ReadFile("testdata/transforms.json")
	var rows [][6]float64
	if err == nil {
		err = json.Unmarshal(b, &rows)
	}
	if err != nil || len(rows) < 500 {
		t.Fatal(len(rows), err)
	}
	worst := 0.0
	for _, r := range rows {
		from, to := of(t, int(r[0])), of(t, int(r[1]))
		tr, err := NewTransform(from, to)
		if err != nil {
			if r[0] != 3979 && r[1] != 3979 && r[0] != 3348 && r[1] != 3348 {
				t.Error(err)
			}
			continue
		}
		a, want := Point{r[2], r[3]}, Point{r[4], r[5]}
		p := []Point{a}
		tr.Points(p, p)
		if from.datum != nil || to.datum != nil {
			if off := metres(to, p[0], want); !(off < 8) { // PROJ kept longitude and latitude
				t.Errorf("%v: %v, %g m", r, p[0], off)
			}
			continue
		}
		off := metres(to, p[0], want)
		tr.Reverse().Points(p, p)
		back := metres(from, p[0], a)
		if worst = max(worst, off, back); !(off < 1e-3 && back < 1e-3) {
			t.Errorf("%v: %g m, back %g m", r, off, back)
		}
	}
	t.Logf("%d points, at most %.2g m", len(rows), worst)
}

// TestAreasOfUse: the CRSs that Earth observation uses agree with PROJ to 1 mm over their areas of use, both ways.
func TestAreasOfUse(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with pyproj")
	}
	out, err := exec.Command(python, "testdata/transforms.py", "areas").Output()
	var rows [][5]float64
	if err == nil {
		err = json.Unmarshal(out, &rows)
	}
	if err != nil || len(rows) < 30_000 {
		t.Fatal(len(rows), err)
	}
	worst, where := 0.0, 0
	for _, r := range rows {
		c := of(t, int(r[0])).OwnDatum()
		p := []Point{{r[1], r[2]}}
		c.Forward(p, p)
		off := metres(c, p[0], Point{r[3], r[4]})
		p[0] = Point{r[3], r[4]}
		c.Inverse(p, p)
		back := metres(of(t, 4326), p[0], Point{r[1], r[2]})
		if !(off < 1e-3 && back < 1e-3) {
			t.Errorf("%v: %g m, back %g m", r, off, back)
		}
		if m := max(off, back); m > worst {
			worst, where = m, int(r[0])
		}
	}
	t.Logf("%d points, at most %.2g m (EPSG:%d)", len(rows), worst, where)
}

// TestThereAndBack: the inverse undoes the projection to 1e-9 degrees in and around the area of use of every CRS.
func TestThereAndBack(t *testing.T) {
	worst := map[string]float64{}
	for _, v := range vectors(t, "vectors.json") {
		c := of(t, int(v[0])).OwnDatum()
		p := []Point{{v[1], v[2]}}
		c.Forward(p, p)
		c.Inverse(p, p)
		dlon := math.Remainder(p[0][0]-v[1], 360) * math.Cos(v[2]*math.Pi/180)
		off := math.Hypot(dlon, p[0][1]-v[2])
		kind := epsg.Projection(c.code)
		if worst[kind] = max(worst[kind], off); !(off < 1e-9) {
			t.Errorf("%s: %v comes back as %v: %g degrees", c, v[1:3], p[0], off)
		}
	}
	t.Log(worst)
}

// TestRefusedShifts: a CRS whose datum cannot be shifted exactly is refused by its code, but not to another on the same
// datum.
func TestRefusedShifts(t *testing.T) {
	for _, pair := range [][2]int{{4267, 4326}, {4326, 4267}, {27700, 32630}, {32631, 31370}, {26717, 26917}} {
		_, err := between(pair[0], pair[1])
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "EPSG:") {
			t.Errorf("%v: %v", pair, err)
		}
	}
	for _, code := range []int{5514, 0, -1, 999999} {
		if _, err := between(code, 4326); !errors.Is(err, fault.Unsupported) {
			t.Errorf("EPSG:%d: %v", code, err)
		}
	}
	tr, err := between(26717, 4267) // both on NAD27
	if err != nil {
		t.Fatal(err)
	}
	p := []Point{{500000, 4000000}}
	tr.Points(p, p)
	if math.Abs(p[0][0]+81) > 1e-9 { // the central meridian, which a shift would leave
		t.Error(p)
	}
	same, err := between(32633, 32633)
	if err != nil || !same.Same() {
		t.Fatal(err)
	}
	q := []Point{{1e7 / 3, -1e7 / 7}}
	if same.Points(p, q); p[0] != q[0] {
		t.Error(p, q)
	}
}

// TestFarSide: a point far from a map has no place on it, or one that no other point has.
func TestFarSide(t *testing.T) {
	for _, code := range []int{32633, 32733, 3035, 6931, 3031, 3413, 5070, 2154, 2180, 5880, 28992, 3857, 6933,
		54008, 54009} {
		c := of(t, code).OwnDatum()
		for lon := -179.5; lon <= 180; lon += 2.5 {
			for lat := -89.5; lat <= 90; lat += 2.5 {
				p := []Point{{lon, lat}}
				c.Forward(p, p)
				c.Inverse(p, p)
				off := math.Hypot(math.Remainder(p[0][0]-lon, 360)*math.Cos(lat*math.Pi/180), p[0][1]-lat)
				if off > 1e-4 { // the series get worse with the distance, by metres at the edge
					t.Errorf("EPSG:%d: %v, %v is %v", code, lon, lat, p[0])
				}
			}
		}
	}
}

// FuzzDefinition: any parameters are refused, or points go there and back, or become NaN.
func FuzzDefinition(f *testing.F) {
	kinds := []string{"tmerc", "merc", "webmerc", "lcc", "aea", "laea", "stere", "sterea", "somerc", "omerc", "omerc_a",
		"cea", "eqc", "sinu", "moll", "poly", "longlat", "krovak"}
	for i := range kinds {
		f.Add(uint8(i), 6378137., 298.257223563, 10., 45., 30., 60., 0., 0.9996, 5e5, 1., 11., 47.)
	}
	f.Add(uint8(3), 6378137., 298.257223563, 10., 0., 30., -30., 0., 1., 5e5, 1., 11., 47.)
	f.Add(uint8(4), 6378137., 0., 10., 0., 0., 0., 0., 1., 5e5, 1e-300, 11., 47.)
	f.Fuzz(func(t *testing.T, kind uint8, a, rf, lon0, lat0, lat1, lat2, ts, k, x0, unit, x, y float64) {
		d := epsg.Definition{Projection: kinds[int(kind)%len(kinds)], A: a, RF: rf, Values: map[string]float64{
			"lon_0": lon0, "lat_0": lat0, "lat_1": lat1, "lat_2": lat2, "lat_ts": ts, "k_0": k, "x_0": x0, "unit": unit,
			"lonc": lon0, "alpha": lat1, "gamma": lat2,
		}}
		c, err := ByDefinition(d)
		if err != nil {
			if !errors.Is(err, fault.Unsupported) {
				t.Fatal(err)
			}
			return
		}
		p := []Point{{x, y}, {x, y}}
		c.Forward(p[:1], p[:1])
		c.Inverse(p[1:], p[1:])
		if lat := p[1][1]; math.Abs(lat) > 91 { // NaN is not a place
			t.Errorf("%v: latitude %v", d, lat)
		}
		if math.IsInf(p[1][0], 0) || math.IsInf(p[1][1], 0) {
			t.Errorf("%v: %v", d, p)
		}
	})
}

// between is NewTransform for two EPSG codes.
func between(from, to int) (*Transform, error) {
	system, err := Lookup(from)
	if err != nil {
		return nil, err
	}
	b, err := Lookup(to)
	if err != nil {
		return nil, err
	}
	return NewTransform(system, b)
}
