package loader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// labelled writes a raster and a GeoJSON file with a square whose left column is given, and returns a spec of them.
func labelled(t *testing.T, left int) (s loader.Spec, label string) {
	t.Helper()
	dir := t.TempDir()
	writeRaster(t, filepath.Join(dir, "images/a.tif"), make([]byte, 256), 16, 32630,
		[6]float64{500000, 10, 0, 4.6e6, 0, -10})
	label = filepath.Join(dir, "labels/a.geojson")
	if err := os.MkdirAll(filepath.Dir(label), 0o777); err != nil {
		t.Fatal(err)
	}
	writeSquare(t, label, left)
	return loader.Spec{Source: filepath.Join(dir, "images"), BatchSize: 1, Fields: []loader.Field{
		{Name: "image", Pattern: "{id}.tif"},
		{Name: "mask", Vector: &spec.Vector{Pattern: "../labels/{id}.geojson"}}}}, label
}

// writeSquare writes a GeoJSON file of one square of 30 m, which covers three columns of pixels.
func writeSquare(t *testing.T, path string, left int) {
	t.Helper()
	x, y := 500000+10*left, 4599970
	text := fmt.Sprintf(`{"type": "FeatureCollection", "crs": {"properties": {"name": "EPSG:32630"}}, "features": [`+
		`{"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [[[%d, %d], [%d, %d], [%d, %d], [%d, %d], `+
		`[%d, %d]]]}}]}`, x, y, x+30, y, x+30, y+30, x, y+30, x, y)
	testfile.Write(t, path, []byte(text))
}

// TestLabelFilesThatChange: an open engine reads the file of an image again if it has changed, even if its size is the
// same.
func TestLabelFilesThatChange(t *testing.T) {
	s, label := labelled(t, 1)
	e := mustOpen(t, s, loader.Options{})
	for i, left := range []int{1, 1, 7} {
		writeSquare(t, label, left)
		if err := os.Chtimes(label, time.Time{}, time.Unix(int64(1000+i), 0)); err != nil {
			t.Fatal(err)
		}
		mask := first(t, e).Tensor("mask").Data
		for x, v := range mask[:16] {
			if want := x >= left && x < left+3; (v == 1) != want {
				t.Errorf("square at %d: column %d is %d", left, x, v)
			}
		}
	}
}

// TestLabelFilesStayBelowTheRoots: neither the folder of a pattern nor a link in it leads out of the roots.
func TestLabelFilesStayBelowTheRoots(t *testing.T) {
	s, label := labelled(t, 1)
	root := filepath.Dir(filepath.Dir(label))
	_, outside := labelled(t, 1)
	for _, c := range []struct {
		pattern string
		roots   []string
		ok      bool
	}{
		{"../labels/{id}.geojson", []string{root}, true},
		{"../labels/{id}.geojson", []string{s.Source}, false},
		{filepath.Dir(outside) + "/{id}.geojson", []string{root}, false},
		{"../linked/{id}.geojson", []string{root}, false},
		{"../links/{id}.geojson", []string{root}, false},
	} {
		_ = os.Symlink(filepath.Dir(outside), filepath.Join(root, "linked"))
		_ = os.Mkdir(filepath.Join(root, "links"), 0o777)
		_ = os.Symlink(outside, filepath.Join(root, "links/a.geojson"))
		s.Fields[1].Vector.Pattern = c.pattern
		e, err := open(t, s, loader.Options{Roots: c.roots})
		if (err == nil) != c.ok || err != nil && fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s below %q: %v", c.pattern, c.roots, err)
		}
		if err == nil {
			first(t, e)
		}
	}
}
