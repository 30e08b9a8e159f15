package loader_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
)

// TestFlatGeobufFields promises that a FlatGeobuf file with an index, as GDAL writes it, gives the masks, instances
// and boxes of the same shapes in GeoParquet, in the CRS of the image and in another one.
func TestFlatGeobufFields(t *testing.T) {
	image := filepath.Join(t.TempDir(), "image.tif")
	for name, place := range map[string]struct {
		epsg int
		x, y float64
	}{"utm_index": {32630, 500000, 4600000}, "lonlat_index": {32633, 450000, 5300000}} {
		g := [6]float64{place.x - 160, 5, 0, place.y + 160, 0, -5}
		writeRaster(t, image, make([]byte, 64*64), 64, place.epsg, g)
		fields := func(ext string) []loader.Field {
			path := filepath.Join(vectorFiles, name+ext)
			return []loader.Field{{Name: "image"},
				{Name: "mask", Vector: &spec.Vector{Path: path, Column: "value", DType: "uint8"}},
				{Name: "instances", Vector: &spec.Vector{Path: path, Kind: spec.InstanceVector}},
				{Name: "boxes", Vector: &spec.Vector{Path: path, Column: "height", Kind: "boxes"}}}
		}
		got := first(t, mustOpen(t, loader.Spec{Source: image, BatchSize: 1, Fields: fields(".fgb")}, loader.Options{}))
		want := first(t, mustOpen(t, loader.Spec{Source: image, BatchSize: 1, Fields: fields(".parquet")},
			loader.Options{}))
		for _, tensor := range []string{"mask", "instances", "boxes", "boxes_values"} {
			a, b := got.Tensor(tensor).Data, want.Tensor(tensor).Data
			if !bytes.Equal(a, b) || len(bytes.Trim(b, "\x00")) < 100 {
				t.Errorf("%s: %s differs from GeoParquet's or is empty: %d and %d bytes", name, tensor, len(a), len(b))
			}
		}
	}
}
