package lonlat

import (
	"math"
	"testing"
)

// TestInverseAgreesWithPROJ: the expected values were computed with PROJ 9
// (rasterio.warp.transform).
func TestInverseAgreesWithPROJ(t *testing.T) {
	for _, c := range []struct {
		epsg           int64
		x, y, lon, lat float64
	}{
		{32633, 500000, 4600000, 15.000000000, 41.551664522},
		{32633, 166021.44, 0.0, 11.999999972, 0.000000000},
		{32633, 833978.56, 9329005.18, 41.582877787, 83.305911955},
		{32601, 300000, 6500000, 179.558300367 - 360, 58.594230092}, // past the antimeridian: in one piece
		{32660, 700000, 100, 178.797052813, 0.000904283},
		{32719, 301005, 8990985, -70.810791736, -9.123592466},
		{32733, 420000, 5500000, 14.053805794, -40.646979916},
		{32756, 334786, 6252080, 151.214022861, -33.858663917},
		{25832, 691000, 5335000, 11.567501229, 48.139558350},
		{26911, 400000, 3760000, -118.082531098, 33.975793655},
		{32631, -300000, 5000000, -7.098193280, 44.704694124},
		{32722, 600000.5, 9999999.25, -50.101357847, -0.000006785},
		{32610, 551730.1, 4179000.9, -122.412737212, 37.756858896},
		{3857, 1489200.5, 6894026.2, 13.377715703, 52.516317868},
		{3857, -13627665.3, 4547675.4, -122.419400259, 37.774900324},
		{4326, 13.25, -7.5, 13.25, -7.5},
	} {
		lon, lat, ok := Inverse(c.epsg, c.x, c.y)
		const tolerance = 2e-9 // degrees: 0.2 mm
		if !ok || math.Abs(lon-c.lon) > tolerance || math.Abs(lat-c.lat) > tolerance {
			t.Errorf("EPSG:%d (%v, %v) is (%.9f, %.9f, %t), want (%.9f, %.9f)",
				c.epsg, c.x, c.y, lon, lat, ok, c.lon, c.lat)
		}
	}
}

func TestInverseRefuses(t *testing.T) {
	for _, c := range []struct {
		epsg int64
		x, y float64
	}{
		{0, 0, 0},
		{32600, 5e5, 0},
		{32661, 5e5, 0},
		{2154, 7e5, 6e6},
		{4326, 0, 91},
		{4326, math.NaN(), 0},
		{4326, 0, math.Inf(1)},
		{32633, 1e9, 0},
		{32633, 5e5, 1e9},
		{32633, math.NaN(), 0},
		{32633, math.Inf(-1), 0},
		{3857, math.Inf(1), 0},
	} {
		if lon, lat, ok := Inverse(c.epsg, c.x, c.y); ok {
			t.Errorf("EPSG:%d (%v, %v) is (%v, %v)", c.epsg, c.x, c.y, lon, lat)
		}
	}
}
