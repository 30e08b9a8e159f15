package tiff

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

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
		b := testfile.Read(t, path)
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
