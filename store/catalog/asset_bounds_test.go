package catalog_test

import (
	"testing"

	"github.com/chaski-eo/chaski/store/catalog"
)

// TestBoundsAreFinite promises that an image with a corner beyond the largest float64 has no bounds: JSON and Parquet's
// statistics have no infinite boxes.
func TestBoundsAreFinite(t *testing.T) {
	for scale, want := range map[float64]bool{1: true, 1e300: true, 1e308: false, -1e308: false} {
		m := catalog.Meta{Transform: &[6]float64{0, scale, 0, 0, 0, -1}}
		if b, ok := m.Bounds(16, 16); ok != want {
			t.Errorf("pixels of %g: %v, %t", scale, b, ok)
		}
	}
}
