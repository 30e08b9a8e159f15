package tiff

import (
	_ "embed"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tiff/ifd"
)

//go:embed testdata/keys.jsonl
var keysOfGDAL string

// TestKeys: GeoKeys have the EPSG code that GDAL 3.10.3 finds, or the parameters that it has without one, by PROJ's
// names. testdata/write_keys.py asks GDAL for 981 sets of keys. The rows are the 504 on which both agree: GDAL leaves
// other sets without a code that has the same parameters, gives EPSG:4326 or none to keys that contradict each other,
// and takes a unit that is not known for the metre. TestKeysByHand has such sets.
func TestKeys(t *testing.T) {
	for line := range strings.Lines(keysOfGDAL) {
		var row struct {
			Keys             []uint16
			Doubles          []float64
			Text, Parameters string
			EPSG             int
			Geographic       bool
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		g := Geo{GeoKeys: row.Keys, GeoDoubles: row.Doubles, GeoASCII: row.Text}
		g.EPSG = g.epsg()
		g.Parameters = g.parameters()
		kind, values := parametersOf(g.Parameters)
		wantKind, want := parametersOf(row.Parameters)
		ok := g.EPSG == row.EPSG && (g.EPSG != 0 || kind == wantKind)
		for name, value := range want {
			ok = ok && (g.EPSG != 0 || math.Abs(values[name]-value) <= 1e-9*math.Abs(value))
		}
		if !ok {
			t.Errorf("%v %v %q: EPSG %d, %q, want %d, %q", row.Keys[4:], row.Doubles, row.Text, g.EPSG, g.Parameters,
				row.EPSG, row.Parameters)
		}
		if g.EPSG != 0 && g.Parameters != "" {
			t.Errorf("EPSG %d, and %q", g.EPSG, g.Parameters)
		}
		if g.EPSG != 0 && g.IsGeographic() != row.Geographic {
			t.Errorf("EPSG %d: geographic %v", g.EPSG, g.IsGeographic())
		}
	}
}

// parametersOf returns the first word of a text, and its numbers by their names.
func parametersOf(text string) (kind string, values map[string]float64) {
	kind, rest, _ := strings.Cut(text, " ")
	values = map[string]float64{}
	for word := range strings.FieldsSeq(rest) {
		name, number, _ := strings.Cut(word, "=")
		values[name], _ = strconv.ParseFloat(number, 64)
	}
	return kind, values
}

// TestKeysByHand: CRSs that GDAL leaves without a code or cannot name have these ones here.
func TestKeysByHand(t *testing.T) {
	const wgs84 = `ESRI PE String = GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,` +
		`298.257223563]],PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]]|`
	doubles := []float64{30, -96, 37.5, 29.5, 45.5, 6378000, 6356000, 300, 10, math.NaN()}
	double := func(key, i uint16) []uint16 { return []uint16{key, ifd.TagGeoDoubles, 1, i} }
	user := []uint16{1024, 0, 1, 1, 2048, 0, 1, 32767}
	nad83 := []uint16{1024, 0, 1, 1, 2048, 0, 1, 4269}
	albers := slices.Concat(nad83, []uint16{3075, 0, 1, 11}, double(3078, 3), double(3079, 4), double(3080, 1),
		double(3081, 2))
	method := func(m uint16) []uint16 {
		return slices.Concat(nad83, []uint16{3075, 0, 1, m}, double(3080, 8), double(3081, 0))
	}
	for _, c := range []struct {
		keys       []uint16
		text       string
		code       int
		parameters string
	}{
		{[]uint16{1024, 0, 1, 1, 2048, 0, 1, 4269, 3072, 0, 1, 4326}, "", 4326, ""},
		{[]uint16{1024, 0, 1, 1, 2048, 0, 1, 4326, 3072, 0, 1, 9999}, "", 9999, ""},
		{[]uint16{1024, 0, 1, 1, 2048, 0, 1, 9999, 3072, 0, 1, 32633}, "", 32633, ""},
		{[]uint16{1024, 0, 1, 1, 2048, 0, 1, 9999, 3072, 0, 1, 32633, 3076, 0, 1, 9001}, "", 32633, ""},
		{[]uint16{1024, 0, 1, 1, 2048, 0, 1, 9999, 3072, 0, 1, 32633, 3076, 0, 1, 9002}, "", 0, ""}, // in feet
		{[]uint16{1024, 0, 1, 1, 3072, 0, 1, 1024}, "", 1024, ""},
		{[]uint16{1024, 0, 1, 2, 2048, 0, 1, 4269, 2049, ifd.TagGeoASCII, uint16(len(wgs84)), 0}, wgs84, 4269, ""},
		{[]uint16{1024, 0, 1, 2, 2049, ifd.TagGeoASCII, uint16(len(wgs84)), 0}, wgs84, 4326, ""},
		{[]uint16{1024, 0, 1, 2, 2048, 0, 1, 32766}, "", 32766, ""},
		{albers, "", 0, "aea lat_0=37.5 lat_1=29.5 lat_2=45.5 lon_0=-96 base=4269"}, // ESRI's 102003
		{slices.Concat(nad83, []uint16{3074, 0, 1, 16017, 3076, 0, 1, 9036}), "", 0,
			"tmerc k_0=0.9996 lon_0=-81 unit=1000 x_0=500000 base=4269"},
		{slices.Concat(nad83, []uint16{3074, 0, 1, 16017, 3076, 0, 1, 32767}, double(3077, 8)), "", 0,
			"tmerc k_0=0.9996 lon_0=-81 unit=10 x_0=500000 base=4269"},
		{slices.Concat(nad83, []uint16{3074, 0, 1, 16017, 3076, 0, 1, 32767}, double(3077, 9)), "", 26917, ""},
		{slices.Concat(nad83, []uint16{3074, 0, 1, 16017, 3076, 0, 1, 32767}, double(3077, 10)), "", 26917, ""},
		{slices.Concat(user, []uint16{3074, 0, 1, 16017}, double(2057, 9)), "", 0,
			"tmerc k_0=0.9996 lon_0=-81 x_0=500000"},
		{slices.Concat(user, []uint16{3074, 0, 1, 16017}), "", 0, "tmerc k_0=0.9996 lon_0=-81 x_0=500000"},
		{slices.Concat(user, []uint16{3074, 0, 1, 16117}, double(2057, 5), double(2059, 7)), "", 0,
			"tmerc k_0=0.9996 lon_0=-81 x_0=500000 y_0=1e+07 a=6.378e+06 rf=300"},
		{slices.Concat(user, []uint16{3074, 0, 1, 16017}, double(2057, 5), double(2058, 6)), "", 0,
			"tmerc k_0=0.9996 lon_0=-81 x_0=500000 a=6.378e+06 rf=289.90909090909093"},
		{slices.Concat(user, []uint16{3074, 0, 1, 16017}, double(2057, 5), double(2058, 5)), "", 0,
			"tmerc k_0=0.9996 lon_0=-81 x_0=500000 a=6.378e+06 rf=0"},
		{slices.Concat(nad83, []uint16{3074, 0, 1, 16061}), "", 0, ""},
		{slices.Concat(nad83, []uint16{3074, 0, 1, 16200}), "", 0, ""},
		{method(9804), "", 0, "merc lat_0=30 lon_0=10 base=4269"},
		{method(9807), "", 0, "tmerc lat_0=30 lon_0=10 base=4269"},
		{method(9812), "", 0, "omerc_a lat_0=30 lonc=10 base=4269"},
		{method(9820), "", 0, "laea lat_0=30 lon_0=10 base=4269"},
		{method(9835), "", 0, "cea lat_0=30 lon_0=10 base=4269"},
	} {
		g := Geo{GeoDoubles: doubles, GeoASCII: c.text}
		g.GeoKeys = append([]uint16{1, 1, 0, uint16(len(c.keys) / 4)}, c.keys...)
		g.EPSG = g.epsg()
		if got := g.parameters(); g.EPSG != c.code || got != c.parameters {
			t.Errorf("%v: EPSG %d, %q, want %d, %q", c.keys, g.EPSG, got, c.code, c.parameters)
		}
	}
}
