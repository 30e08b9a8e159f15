package catalog_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestOtherFormatsAreNamed recognises files of other formats by their first bytes or their name: they are unsupported
// and not corrupt.
func TestOtherFormatsAreNamed(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"chip.jxl": "\x00\x00\x00\x0cJXL \r\n\x87\n", "chip.tif": "\x00\x00\x00\x0cJXL \r\n\x87\n",
		"scene.img": "EHFA_HEADER_TAG\x00",
		"scene.hdr": "ENVI\nsamples = 3\n", "rows.geojson": `{"type":"FeatureCollection"}`,
		"broken.img": "II*\x00\x00\x00\x00\x00",
		"noise.dat":  "\x01\x02\x03\x04\x05\x06\x07\x08\x09", "broken.hdr": "ENVI\n",
		"plain.dat": "\x01\x02\x03\x04\x05\x06\x07\x08\x09", "plain.hdr": "a text of its own",
	} {
		testfile.Write(t, filepath.Join(dir, name), []byte(content))
	}
	for name, want := range map[string]string{
		"chip.jxl": "a JPEG XL image", "chip.tif": "a JPEG XL image", "scene.img": "HFA",
		"scene.hdr":    "header of an ENVI raster",
		"rows.geojson": "GeoJSON", "broken.img": "", "noise.dat": "", "plain.dat": "",
	} {
		_, _, err := catalog.OpenAsset(context.Background(), &openers.Files{}, filepath.Join(dir, name), 0)
		kind := fault.Unsupported
		if want == "" {
			kind = fault.Corrupt
		}
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for name, c := range map[string]struct{ content, says string }{ // in full
		"a.jp2": {"\x00\x00\x00\x0cjP  \r\n\x87\n", "a JPEG 2000 image is not read: convert it, as by " +
			"'gdal_translate -of COG a.jp2 a.tif': unsupported"},
		"b.jp2": {"of no format", "a JPEG 2000 image is not read as a raster: TIFF (GeoTIFF, COG, TOG) and rumi are: " +
			"unsupported"},
		"a.zip": {"PK\x03\x04 and so on", "a zip archive is not read as a raster: name its member, as in " +
			"/vsizip/{FILE.zip}/MEMBER or, in a container, FILE::SAMPLE/PATH: unsupported"},
		"a.png": {"of no format", "it begins like no PNG, JPEG, BMP, NumPy, TIFF, rumi or VRT file: corrupt"},
	} {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, []byte(c.content))
		_, _, err := catalog.OpenAsset(t.Context(), &openers.Files{}, path, 0)
		if err == nil || err.Error() != path+": header at 0: "+c.says {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
	b := bucket{dir}
	for name, kind := range map[string]fault.Kind{filepath.Join(dir, "rows.geojson"): fault.Unsupported,
		filepath.Join(dir, "missing.geojson"): fault.NotFound, filepath.Join(dir, "missing.jp2"): fault.NotFound,
		"s3://bucket/missing.jp2": fault.Unsupported, "/vsizip/s3://bucket/missing.zip": fault.NotFound} {
		_, err := catalog.Open(context.Background(), name, []catalog.Source{{Field: "image", Column: "path"}},
			catalog.Options{Opener: &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"s3": b}}})
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), filepath.Base(name)) {
			t.Errorf("%s as a dataset: %v, want %v", name, err, kind)
		}
	}
}
