package crs_test

import (
	"testing"

	"github.com/chaski-eo/chaski/crs"
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
