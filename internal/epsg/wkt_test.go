package epsg

import (
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]int{
		"EPSG:32633":  32633,
		"epsg:4326":   4326,
		" EPSG:3857 ": 3857,
		"OGC:CRS84":   4326,
		"ESRI:54009":  54009,
		`GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],` +
			`PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]]`: 4326,
		`GEOGCS["NAD83",DATUM["North_American_Datum_1983",SPHEROID["GRS 1980",6378137,298.257222101]],` +
			`PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]`: 4269,
		`PROJCRS["x",BASEGEOGCRS["y"],ID["EPSG",32633]]`:   32633,
		`PROJCS["x",GEOGCS["y"],AUTHORITY["EPSG","2154"]]`: 2154,
		"":                                     0,
		"EPSG:":                                0,
		"EPSG:x":                               0,
		"WGS 84":                               0,
		"GEOGCS[":                              0,
		`GEOGCS["a"`:                           0,
		`PROJCS["a"]`:                          0,
		`PROJCS["a"]]`:                         0,
		"[":                                    0,
		`A["x]`:                                0,
		strings.Repeat("A[", 100):              0,
		`PROJCS["x",AUTHORITY["EPSG","5514"]]`: 0,
	} {
		if got := ByName(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// factor bounds the memory of well-known text by its length: a number of two bytes becomes a string of 16 in a slice
// that doubles, and Described parses it twice. Texts of over 64 KiB are none.
const factor = 128

// TestTaken: texts of many parts take memory by their length.
func TestTaken(t *testing.T) {
	for _, text := range taken.WKT() {
		for _, text := range []string{text, text[:maxWKT]} {
			taken.Check(t, min(len(text), maxWKT), factor, func() {
				ByName(text)
				Described(text)
			})
		}
	}
}

// FuzzName: no text causes a panic or names a CRS that has no place on Earth.
func FuzzName(f *testing.F) {
	for _, s := range []string{
		"EPSG:32633", "OGC:CRS84",
		`PROJCS["a",GEOGCS["b",DATUM["D_WGS_1984",SPHEROID["c",6378137,298.257223563]],PRIMEM["d",0],` +
			`UNIT["e",0.0174532925199433]],PROJECTION["Albers"],PARAMETER["Standard_Parallel_1",1],UNIT["m",1]]`,
		`A[1,"b",C(2)]`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var code int
		taken.Check(t, min(len(text), maxWKT), factor, func() { code = ByName(text) })
		if code != 0 && find(code) == "" {
			t.Errorf("%q is EPSG:%d", text, code)
		}
	})
}
