package raster

import (
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// TestOneRaster: a name leads to a file, also one whose name looks like a path in a container; a directory or a table
// is no raster.
func TestOneRaster(t *testing.T) {
	dir := folder.Of(t, "a.tif", "b.tif::c", "d.parquet=PAR1", "e.tif=no raster")
	folder.Write(t, filepath.Join(dir, "b.tif::c"), string(folder.TIFF(7, 3, 0)))
	o := resources.Options{}.WithDefaults()
	for name, c := range map[string]struct {
		height int
		kind   fault.Kind
	}{
		"a.tif": {1, 0}, "b.tif::c": {7, 0}, "absent.tif": {0, fault.NotFound}, "d.parquet": {0, fault.Unsupported},
		"e.tif": {0, fault.Corrupt}, "a.tif::b": {0, fault.Unsupported},
	} {
		asset, err := One(t.Context(), o, filepath.Join(dir, name))
		if fault.KindOf(err) != c.kind || err == nil && asset.Index.Height != c.height {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]bool{"a.tif": false, "a.tacozip::b": true, "/vsisubfile/1_2,a.tif": true} {
		if inside(name) != want {
			t.Errorf("%s lies in a container: %v", name, !want)
		}
	}
}
