package epsg

import "testing"

// TestSameParameters compares definitions that differ in one word from each other.
func TestSameParameters(t *testing.T) {
	base := Definition{Projection: "laea", Base: 4326,
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
		if got := SameParameters(base.String(), text); got != same {
			t.Errorf("%q and %q: %v, want %v", base.String(), text, got, same)
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
		if code, parameters := Described(text); code != want.code || parameters != want.parameters {
			t.Errorf("%q: %d %q, want %v", text, code, parameters, want)
		}
	}
	code, text := Described(custom)
	if code != 0 || !SameParameters(text, "laea lat_0=45.5 lon_0=9 base=4326") ||
		SameParameters(text, "laea lat_0=45 lon_0=9 base=4326") {
		t.Errorf("well-known text without a code: %d %q", code, text)
	}
}
