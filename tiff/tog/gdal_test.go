package tog

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

//go:embed testdata/read.py
var readScript string

// TestGDALReadsWhatIsWritten: GDAL reads the same pixels and metadata from a file of Write, and
// rio-cogeo accepts it where it is installed. CHASKI_PYTHON names a Python with rasterio.
func TestGDALReadsWhatIsWritten(t *testing.T) {
	python := os.Getenv("CHASKI_PYTHON")
	if python == "" {
		t.Skip("CHASKI_PYTHON names no Python with rasterio")
	}
	dir := t.TempDir()
	want := map[string]Options{}
	sums := map[string]string{}
	add := func(name string, o Options) {
		pix := randomImage(o)
		var w bytes.Buffer
		if err := Write(&w, pix, o); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name+".tif")
		testfile.Write(t, path, w.Bytes())
		want[path], sums[path] = o, corpus.SHA256(pix)
	}
	utm := tiff.Geo{EPSG: 32633, HasTransform: true, Transform: [6]float64{500000, 10, 0, 4600000, 0, -10}}
	for d := chunk.Uint8; d <= chunk.Complex128; d++ {
		add(d.String(), Options{Shape: [3]int{3, 100, 70}, DType: d, Tile: 48, Geo: utm, Photometric: 1})
	}
	add("one band, one tile", Options{Shape: [3]int{1, 16, 16}, DType: chunk.Uint16, Tile: 16})
	add("geographic", Options{
		Shape: [3]int{2, 20, 30}, DType: chunk.Float32, Tile: 16,
		NoData: "nan", BandNames: []string{"a & <b>", "é"},
		Geo: tiff.Geo{EPSG: 4326, HasTransform: true, Transform: [6]float64{7, .1, .01, 50, .02, -.1}},
	})
	add("nodata", Options{Shape: [3]int{2, 20, 30}, DType: chunk.Uint16, Tile: 16, NoData: "65535", Geo: utm})

	var paths []string
	for p := range want {
		paths = append(paths, p)
	}
	out, err := exec.Command(python, append([]string{"-c", readScript}, paths...)...).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rows := map[string]struct {
		SHA256, Interleave, Layout string
		Shape                      []int
		Transform                  []float64
		EPSG                       int
		NoData                     string
		Names                      []string
		COG                        *bool
	}{}
	if err := json.Unmarshal(out, &rows); err != nil {
		t.Fatal(err)
	}
	for path, o := range want {
		r, name := rows[path], filepath.Base(path)
		if r.SHA256 != sums[path] || !slices.Equal(r.Shape, o.Shape[:]) {
			t.Errorf("%s: other pixels, shape %v", name, r.Shape)
		}
		if r.Interleave != "TILE" || r.Layout != "COG" {
			t.Errorf("%s: interleave %s, layout %s", name, r.Interleave, r.Layout)
		}
		if o.Geo.HasTransform && (!slices.Equal(r.Transform, o.Geo.Transform[:]) || r.EPSG != o.Geo.EPSG) {
			t.Errorf("%s: transform %v EPSG %d", name, r.Transform, r.EPSG)
		}
		if r.NoData != o.NoData {
			t.Errorf("%s: nodata %s", name, r.NoData)
		}
		if o.BandNames != nil && !slices.Equal(r.Names, o.BandNames) {
			t.Errorf("%s: names %q", name, r.Names)
		}
		if r.COG != nil && !*r.COG {
			t.Errorf("%s: not a valid COG", name)
		}
	}
}
