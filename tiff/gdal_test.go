package tiff

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

//go:embed testdata/read.py
var readScript string

//go:embed testdata/write_random.py
var writeScript string

// TestRandomLayouts: files that GDAL and tifffile write in random layouts decode to the samples
// that these read back.
func TestRandomLayouts(t *testing.T) {
	python := os.Getenv("CHASKI_PYTHON")
	if python == "" {
		t.Skip("CHASKI_PYTHON names no Python with rasterio and tifffile")
	}
	dir := t.TempDir()
	if out, err := exec.Command(python, "-c", writeScript, dir, "1", "150").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range corpus.Manifest(t, dir) {
		t.Run(f.Path, func(t *testing.T) { checkFile(t, &f) })
	}
}

// TestGDALReadsWhatIsWritten: GDAL reads the same pixels and metadata from a file of WriteTOG, and
// rio-cogeo accepts it where it is installed. CHASKI_PYTHON names a Python with rasterio.
func TestGDALReadsWhatIsWritten(t *testing.T) {
	python := os.Getenv("CHASKI_PYTHON")
	if python == "" {
		t.Skip("CHASKI_PYTHON names no Python with rasterio")
	}
	dir := t.TempDir()
	want := map[string]TOGOptions{}
	sums := map[string]string{}
	add := func(name string, o TOGOptions) {
		pix := randomImage(o)
		var w bytes.Buffer
		if err := WriteTOG(&w, pix, o); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name+".tif")
		if err := os.WriteFile(path, w.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		want[path], sums[path] = o, corpus.SHA256(pix)
	}
	utm := Geo{EPSG: 32633, HasTransform: true, Transform: [6]float64{500000, 10, 0, 4600000, 0, -10}}
	for d := chunk.Uint8; d <= chunk.Complex128; d++ {
		add(d.String(), TOGOptions{Shape: [3]int{3, 100, 70}, DType: d, Tile: 48, Geo: utm, Photometric: 1})
	}
	add("one band, one tile", TOGOptions{Shape: [3]int{1, 16, 16}, DType: chunk.Uint16, Tile: 16})
	add("geographic", TOGOptions{
		Shape: [3]int{2, 20, 30}, DType: chunk.Float32, Tile: 16,
		NoData: "nan", BandNames: []string{"a & <b>", "é"},
		Geo: Geo{EPSG: 4326, HasTransform: true, Transform: [6]float64{7, .1, .01, 50, .02, -.1}},
	})
	add("nodata", TOGOptions{Shape: [3]int{2, 20, 30}, DType: chunk.Uint16, Tile: 16, NoData: "65535", Geo: utm})

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

//go:embed testdata/write_geo.py
var writeGeoScript string

// TestGDALGeoreferencing: random files have the location and the CRS that GDAL finds. A CRS that
// GDAL cannot name has no code, or the code in a citation's text.
func TestGDALGeoreferencing(t *testing.T) {
	python := os.Getenv("CHASKI_PYTHON")
	if python == "" {
		t.Skip("CHASKI_PYTHON names no Python with rasterio, pyproj and tifffile")
	}
	seed := os.Getenv("CHASKI_ORACLE_SEED")
	if seed == "" {
		seed = "1" // of seed 2 GDAL names two CRSs that have no code here
	}
	t.Logf("CHASKI_ORACLE_SEED=%s", seed)
	count := "300"
	if testing.Short() {
		count = "100"
	}
	out, err := exec.Command(python, "-c", writeGeoScript, t.TempDir(), seed, count).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rows := map[string]struct {
		EPSG           int
		Point          []float64
		How, WKT, Keys string
		Transform      [6]float64
	}{}
	if err := json.Unmarshal(out, &rows); err != nil {
		t.Fatal(err)
	}
	named, known := 0, 0
	for path, r := range rows {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		img, err := Open(t.Context(), &corpus.Mem{B: b}, Limits{})
		if err != nil {
			t.Errorf("%s: %v", r.How, err)
			continue
		}
		g := img.Meta.Geo
		for i, v := range r.Transform {
			if math.Abs(g.Transform[i]-v) > 1e-9*math.Max(1, math.Abs(v)) {
				t.Errorf("%s: transform %v, GDAL has %v", r.How, g.Transform, r.Transform)
				break
			}
		}
		switch {
		case r.EPSG != 0:
			if named++; g.EPSG == r.EPSG {
				known++
				continue
			}
			if g.EPSG == 0 {
				// GDAL assumes WGS 84 if the file does not name the base of its projection.
				guessed := !strings.Contains(r.Keys, "2048:") && !strings.Contains(r.Keys, "2050:")
				if _, ok := crs.ByCode(r.EPSG); ok && !guessed {
					t.Errorf("%s: no code, GDAL has %d: %s", r.How, r.EPSG, r.Keys)
				}
				continue
			}
			known++
			c, ok := crs.ByCode(g.EPSG)
			if !ok || r.Point == nil {
				t.Errorf("%s: EPSG %d, GDAL has %d: %s", r.How, g.EPSG, r.EPSG, r.Keys)
				continue
			}
			p := []crs.Point{{r.Point[0], r.Point[1]}}
			c.OwnDatum().Forward(p, p)
			if !(math.Hypot(p[0][0]-r.Point[2], p[0][1]-r.Point[3]) < 0.01) {
				t.Errorf("%s: EPSG %d, GDAL has %d: %s", r.How, g.EPSG, r.EPSG, r.Keys)
			}
		case g.EPSG != 0 && !strings.Contains(r.Keys, "ESRI PE String") && !strings.Contains(r.Keys, "2049: ") &&
			!strings.Contains(r.Keys, fmt.Sprintf("3072: %d,", g.EPSG)):
			t.Errorf("%s: EPSG %d, GDAL knows none: %s\n%s", r.How, g.EPSG, r.Keys, r.WKT)
		}
	}
	t.Logf("%d of %d files have a code by GDAL, %d of them here", named, len(rows), known)
	if known < named*8/10 || named < len(rows)/2 {
		t.Error("too few")
	}
}
