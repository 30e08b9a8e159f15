package cli

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackComputesColumns: the values are those of PROJ (the centre) and of tifffile packed as tacotiff 0.0.6
// packs them (taco:header), for the first chip of testdata/coast.
func TestPackComputesColumns(t *testing.T) {
	at := folderOf(t, map[string]string{"in/tile_00/note.json": "{}"})
	run := func(want int, args ...string) result {
		t.Helper()
		r := chaski(t.Context(), args...)
		if r.code != want {
			t.Fatalf("%v: %s%s", args, r.out, r.err)
		}
		return r
	}
	coast := filepath.Join("..", "..", "..", "testdata", "coast", "coast.tacozip")
	for _, name := range []string{"s2", "ref"} {
		run(0, "extract", "-o", at("in/tile_00/"+name), coast+"::tile_00/"+name)
	}
	pack := []string{"pack", "-o", at("a.tacozip"), "--collection", at("about.json"), "--columns",
		"stac,istac,header,index"}
	run(0, append(pack, at("in"))...)
	run(0, "verify", at("a.tacozip"))
	const query = `SELECT "stac:crs", "stac:tensor_shape", "stac:geotransform", "stac:centroid",
		"istac:geometry" FROM data`
	var rows [][]any
	if err := json.Unmarshal([]byte(rowsOf(t, query, at("a.tacozip"))), &rows); err != nil {
		t.Fatal(err)
	}
	// A folder has the place of its first raster: that of ref/label.tif.
	got, _ := json.Marshal([]any{rows[0][0], rows[0][1], rows[0][2]})
	want := `["EPSG:32620",[1,24,24],[500000,20,0,4400000,0,-20]]`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	point := hexOf(t, rows[0][3])
	for i, want := range []float64{-62.99719864965434, 39.74774503866693} {
		if v := math.Float64frombits(binary.LittleEndian.Uint64(point[5+8*i:])); math.Abs(v-want) > 1e-8 {
			t.Errorf("centre: got %v, want %v", v, want)
		}
	}
	ring := hexOf(t, rows[0][4])
	corners := []float64{500000, 4400000, 500000, 4399520, 500480, 4399520, 500480, 4400000, 500000, 4400000}
	for i, want := range corners {
		if v := math.Float64frombits(binary.LittleEndian.Uint64(ring[13+8*i:])); v != want {
			t.Errorf("corner %d: got %v, want %v", i/2, v, want)
		}
	}
	rows = nil
	const files = `SELECT id, "taco:header", "chaski:index" IS NULL FROM level2`
	if err := json.Unmarshal([]byte(rowsOf(t, files, at("a.tacozip"))), &rows); err != nil {
		t.Fatal(err)
	}
	headers := map[string]string{
		"label.tif": "4c4f5645010018000000180000001000100001000801026a03000000000000" +
			"040000001c00000017000000160000001a000000",
		"img.tif": "4c4f564501001800000018000000100010000300100102e6030000000000000c000000b2010000be0100009f01" +
			"00002a0100002b01000019010000f5000000f7000000ec000000ac000000ae000000a6000000"}
	for _, row := range rows {
		id := row[0].(string)
		if row[1].(map[string]any)["hex"] != headers[id] || row[2].(bool) {
			t.Errorf("%s: header %v, index is null: %v", id, row[1], row[2])
		}
	}
	for part, args := range map[string][]string{
		"must be one of":         {"--columns", "what"},
		"samples: an index has ": {"--columns", "stac", "--form", "tacocat"},
	} {
		r := run(2, append(append([]string{"pack", "-o", at("b.tacozip"), "--collection", at("about.json")}, args...),
			at("in"))...)
		if !strings.Contains(r.err, part) {
			t.Errorf("%v: %s", args, r.err)
		}
	}
}

// TestPackComputesForContainers: columns of a container are computed again, and a broken raster is named.
func TestPackComputesForContainers(t *testing.T) {
	at := folderOf(t, map[string]string{"in/note.json": "{}", "in/broken.tif": "II*\x00but not further"})
	r := chaski(t.Context(), "pack", "-o", at("x.tacozip"), "--collection", at("about.json"), "--columns", "stac",
		at("in"))
	if r.code != 1 || !strings.Contains(r.err, `sample "broken.tif"`) {
		t.Errorf("%d %s", r.code, r.err)
	}
	coast := filepath.Join("..", "..", "..", "testdata", "coast")
	r = chaski(t.Context(), "pack", "-o", at("y"), "--columns", "stac", filepath.Join(coast, "flat.tacozip"))
	if r.code != 0 {
		t.Fatal(r.err)
	}
	got := rowsOf(t, `SELECT id, "stac:tensor_shape" FROM data LIMIT 1`, at("y"))
	if !strings.HasPrefix(got, `[["chip_00.tif",[3,24,24]`) {
		t.Error(got)
	}
}

// hexOf returns the bytes of a binary value in the JSON of a query.
func hexOf(t *testing.T, v any) []byte {
	t.Helper()
	text, _ := v.(map[string]any)["hex"].(string)
	b := make([]byte, len(text)/2)
	for i := range b {
		for _, c := range text[2*i : 2*i+2] {
			b[i] = b[i]<<4 | byte(strings.IndexRune("0123456789abcdef", c))
		}
	}
	return b
}
