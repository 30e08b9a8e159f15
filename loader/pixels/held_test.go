package pixels_test

import (
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestHeldForSomePlanes: the forecast of what a reader holds is close to what it holds after it has read all planes of
// a chip, or some.
func TestHeldForSomePlanes(t *testing.T) {
	const bands, side = 24, 128
	content := netsim.Chip(1, bands, side, side)
	asset := catalog.Asset{URI: filepath.Join(t.TempDir(), "a.tif")}
	testfile.Write(t, asset.URI, content)
	image, err := tiff.Open(t.Context(), source.Memory(content), tiff.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	asset.Index = image.Index
	for _, planes := range [][]int{nil, {5}, {2, 9, 3}} {
		r := pixels.NewReader(resources.Options{Opener: &openers.Files{}, MaxChunkBytes: 1 << 20, Fetchers: 32})
		box := chunk.Box{B1: bands, Y1: side, X1: side}
		if err := r.Read(t.Context(), asset, box, planes, pixels.Nowhere{}, nil); err != nil {
			t.Fatal(err)
		}
		held, forecast := r.HeldBytes(), pixels.HeldFor(asset.Index, planes)
		if forecast < held*3/4 || forecast > held*5/4 {
			t.Errorf("planes %v: the reader holds %d bytes, the forecast is %d", planes, held, forecast)
		}
	}
}
