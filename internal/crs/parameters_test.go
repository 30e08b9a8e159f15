package crs_test

import (
	"testing"

	"github.com/chaski-eo/chaski/internal/crs"
)

// TestSameParameters compares definitions that differ in one word from each other.
func TestSameParameters(t *testing.T) {
	base := crs.Definition{Projection: "laea", Base: 4326,
		Values: map[string]float64{"lat_0": 45, "lon_0": 9, "unit": 1}}
	for text, same := range map[string]bool{
		base.String():                                  true,
		"laea lat_0=45 lon_0=9":                        true, // the datum is not known
		"laea lat_0=45 lon_0=9 base=4326 x_0=0":        true,
		"laea lat_0=45.00000000001 lon_0=9 base=4326":  true,
		"laea lat_0=46 lon_0=9 base=4326":              false,
		"laea lat_0=45 lon_0=9 base=4258":              false,
		"laea lat_0=45 lon_0=9 base=4326 x_0=1":        false,
		"laea lat_0=45 lon_0=9 base=4326 unit=0.3048":  false,
		"aea lat_0=45 lon_0=9 base=4326":               false,
		"laea lat_0=north lon_0=9 base=4326":           false,
		"laea lat_0=45 lon_0=9 a=6378137 rf=298.25722": true, // another way to name the datum
		"": false,
	} {
		if got := crs.SameParameters(base.String(), text); got != same {
			t.Errorf("%q and %q: %v, want %v", base.String(), text, got, same)
		}
	}
}

// TestCodesAgainstParameters promises that a code and the parameters of its CRS may be one CRS, and that a code and
// parameters that put a place 10 km away are not.
func TestCodesAgainstParameters(t *testing.T) {
	europe := []crs.Point{{4321000, 3210000}, {4421000, 3110000}}
	utm := []crs.Point{{500000, 4600000}, {510000, 4590000}}
	for _, c := range []struct {
		code   int
		text   string
		points []crs.Point
		same   bool
	}{
		{3035, "laea lat_0=52 lon_0=10 x_0=4321000 y_0=3210000 base=4258", europe, true},
		{3035, "laea lat_0=52 lon_0=10 x_0=4321000 y_0=3210000 a=6378137 rf=298.257222101", europe, true},
		{3035, "laea lat_0=51.9 lon_0=10 x_0=4321000 y_0=3210000 base=4258", europe, false},
		{3035, "laea lat_0=52 lon_0=10 x_0=4311000 y_0=3210000 base=4258", europe, false},
		{32630, "tmerc lon_0=-3 k_0=0.9996 x_0=500000 base=4326", utm, true},
		{32630, "tmerc lon_0=3 k_0=0.9996 x_0=500000 base=4326", utm, false},
		{32630, "tmerc lon_0=-3 k_0=0.9996 x_0=500000 y_0=10000000 base=4326", utm, false},
		{32630, "robin lon_0=-3", utm, true},                     // a projection that is not known
		{999999, "tmerc lon_0=-3 base=4326", utm, true},          // a code that is not known
		{32630, "tmerc lon_0=west k_0=0.9996 a=1", utm, true},    // no CRS
		{4326, "longlat base=4326", []crs.Point{{180, 0}}, true}, // at the edge
	} {
		if got := crs.MayBe(c.code, c.text, c.points); got != c.same {
			t.Errorf("EPSG:%d and %q: %v, want %v", c.code, c.text, got, c.same)
		}
	}
}

// TestDescribed reads codes and parameters out of what tables say about a CRS.
func TestDescribed(t *testing.T) {
	const custom = `PROJCS["own",GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],` +
		`PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],PROJECTION["Lambert_Azimuthal_Equal_Area"],` +
		`PARAMETER["latitude_of_center",45.5],PARAMETER["longitude_of_center",9],PARAMETER["false_easting",0],` +
		`PARAMETER["false_northing",0],UNIT["metre",1]]`
	for text, want := range map[string]struct {
		code       int
		parameters string
	}{
		"EPSG:32630": {32630, ""}, "epsg:32630 ": {32630, ""}, "EPSG:999999": {999999, ""}, "OGC:CRS84": {4326, ""},
		"EPSG:x": {}, "": {}, "IGNF:LAMB93": {}, "PROJCS[": {},
		`PROJCRS["a",ID["EPSG",3035]]`: {3035, ""},
	} {
		if code, parameters := crs.Described(text); code != want.code || parameters != want.parameters {
			t.Errorf("%q: %d %q, want %v", text, code, parameters, want)
		}
	}
	code, text := crs.Described(custom)
	if code != 0 || !crs.SameParameters(text, "laea lat_0=45.5 lon_0=9 base=4326") ||
		crs.SameParameters(text, "laea lat_0=45 lon_0=9 base=4326") {
		t.Errorf("well-known text without a code: %d %q", code, text)
	}

	const grads = `PROJCS["own",GEOGCS["NTF (Paris)",DATUM["NTF_Paris",SPHEROID["Clarke 1880 (IGN)",6378249.2,` +
		`293.466021293627]],PRIMEM["Paris",2.33722917],UNIT["grad",0.0157079632679489]],` +
		`PROJECTION["Lambert_Conformal_Conic_1SP"],PARAMETER["latitude_of_origin",49],` +
		`PARAMETER["central_meridian",0],PARAMETER["scale_factor",0.999877499],` +
		`PARAMETER["false_easting",600000],PARAMETER["false_northing",3200000],` +
		`UNIT["metre",1]]`
	// As GDAL writes EPSG:27583.
	if code, text := crs.Described(grads); code != 0 || !crs.MayBe(27583, text, []crs.Point{{600000, 3200000}}) {
		t.Errorf("well-known text in grads: %d %q", code, text)
	}
}
