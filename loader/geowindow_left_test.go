package loader_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/spec"
)

// TestGeoWindowLosesNoScene: a scene that the maps of windows cannot show is an error with its file, or counted in the
// forecast by the policy of bad samples. If it is the only one, it is an error either way.
func TestGeoWindowLosesNoScene(t *testing.T) {
	for name, c := range map[string]struct {
		crs  string
		epsg int
		at   [6]float64 // of the other scene, 64 by 64 pixels
	}{
		"past UTM":       {"", 3413, [6]float64{0, 100, 0, -2e5, 0, -100}},
		"folds":          {"EPSG:3035", 4326, [6]float64{-175, 0.2, 0, -45, 0, -0.2}},
		"around a pole":  {"EPSG:6933", 3413, [6]float64{-3200, 100, 0, 3200, 0, -100}},
		"no known place": {"", 0, [6]float64{}},
	} {
		dir := t.TempDir()
		other := filepath.Join(dir, "other.tif")
		writeRaster(t, other, bytes.Repeat([]byte{1}, 64*64), 64, c.epsg, c.at)
		s := loader.Spec{Source: dir, Fields: []loader.Field{{Name: "image", DType: "native"}}, BatchSize: 4,
			BadSamples: spec.BadSkip, Sampler: loader.Sampler{Kind: spec.GeoWindow,
				GeoWindows: spec.GeoWindows{SizeM: 160, Resolution: 10, PerEpoch: 8, CRS: spec.Text(c.crs)}}}
		_, err := loader.Open(t.Context(), s, loader.Options{})
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "other.tif") {
			t.Errorf("%s, alone: %v", name, err)
		}
		writeRaster(t, filepath.Join(dir, "good.tif"), bytes.Repeat([]byte{2}, 64*64), 64, 32630,
			[6]float64{500000, 10, 0, 4.6e6, 0, -10})
		e, err := loader.Open(t.Context(), s, loader.Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		p, err := e.Forecast(t.Context(), dryrun.Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		if p.LeftOut != 1 || !strings.Contains(p.FirstLeft, "other.tif") {
			t.Errorf("%s: %d left out: %s", name, p.LeftOut, p.FirstLeft)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		s.BadSamples = spec.BadError
		_, err = loader.Open(t.Context(), s, loader.Options{})
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "other.tif") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
