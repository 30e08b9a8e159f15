package tiff

import (
	_ "embed"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
)

//go:embed testdata/keys.jsonl
var keysOfGDAL string

// TestKeys: GeoKeys have the EPSG code that GDAL 3.10.3 finds, or the parameters that it has without one, by PROJ's
// names. testdata/write_keys.py writes the rows; those of CRSs that this package leaves without a code are left out.
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
