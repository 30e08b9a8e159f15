package crs

import (
	"testing"

	"github.com/chaski-eo/chaski/internal/epsg"
)

// TestCodesAgainstParameters promises that a code and the parameters of its CRS may be one CRS, and that a code and
// parameters that put a place 10 km away are not.
func TestCodesAgainstParameters(t *testing.T) {
	europe := []Point{{4321000, 3210000}, {4421000, 3110000}}
	utm := []Point{{500000, 4600000}, {510000, 4590000}}
	for _, c := range []struct {
		code   int
		text   string
		points []Point
		same   bool
	}{
		{3035, "laea lat_0=52 lon_0=10 x_0=4321000 y_0=3210000 base=4258", europe, true},
		{3035, "laea lat_0=52 lon_0=10 x_0=4321000 y_0=3210000 a=6378137 rf=298.257222101", europe, true},
		{3035, "laea lat_0=51.9 lon_0=10 x_0=4321000 y_0=3210000 base=4258", europe, false},
		{3035, "laea lat_0=52 lon_0=10 x_0=4311000 y_0=3210000 base=4258", europe, false},
		{32630, "tmerc lon_0=-3 k_0=0.9996 x_0=500000 base=4326", utm, true},
		{32630, "tmerc lon_0=3 k_0=0.9996 x_0=500000 base=4326", utm, false},
		{32630, "tmerc lon_0=-3 k_0=0.9996 x_0=500000 y_0=10000000 base=4326", utm, false},
		{32630, "robin lon_0=-3", utm, true},                  // a projection that is not known
		{999999, "tmerc lon_0=-3 base=4326", utm, true},       // a code that is not known
		{32630, "tmerc lon_0=west k_0=0.9996 a=1", utm, true}, // no CRS
		{4326, "longlat base=4326", []Point{{180, 0}}, true},  // at the edge
	} {
		if got := MayBe(c.code, c.text, c.points); got != c.same {
			t.Errorf("EPSG:%d and %q: %v, want %v", c.code, c.text, got, c.same)
		}
	}

	const grads = `PROJCS["own",GEOGCS["NTF (Paris)",DATUM["NTF_Paris",SPHEROID["Clarke 1880 (IGN)",6378249.2,` +
		`293.466021293627]],PRIMEM["Paris",2.33722917],UNIT["grad",0.0157079632679489]],` +
		`PROJECTION["Lambert_Conformal_Conic_1SP"],PARAMETER["latitude_of_origin",49],` +
		`PARAMETER["central_meridian",0],PARAMETER["scale_factor",0.999877499],` +
		`PARAMETER["false_easting",600000],PARAMETER["false_northing",3200000],` +
		`UNIT["metre",1]]`
	// As GDAL writes EPSG:27583.
	if code, text := epsg.Described(grads); code != 0 || !MayBe(27583, text, []Point{{600000, 3200000}}) {
		t.Errorf("well-known text in grads: %d %q", code, text)
	}
}
