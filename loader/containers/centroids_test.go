package containers

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestCentroids: points may be in the first column; one that is no geometry is a fault.
func TestCentroids(t *testing.T) {
	path := filepath.Join(corpus.Testdata(t), "coast", "coast.tacozip")
	found, err := opened(t, options(t), []string{path}).Samples(t.Context(), spec.Subset{}, options(t))
	if err != nil {
		t.Fatal(err)
	}
	points := func(i int) []byte {
		b := []byte{1, 1, 0, 0, 0}
		for _, v := range []float64{float64(i), -float64(i)} {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		return b
	}
	found.c.level0 = tables.FromVectors([]string{"stac:centroid"},
		[]*tables.Vector{build.Bytes(len(found.Rows), points)})
	visits := int64(0)
	if err := found.c.Centroids(t.Context(), func(row int64, lon, lat float64) error {
		if visits++; lon != float64(row) || lat != -float64(row) {
			t.Errorf("row %d is at %v, %v", row, lon, lat)
		}
		return nil
	}); err != nil || visits != 12 {
		t.Errorf("%d centroids, %v", visits, err)
	}
	broken := func(i int) []byte { return points(i)[:9] }
	found.c.level0 = tables.FromVectors([]string{"stac:centroid"},
		[]*tables.Vector{build.Bytes(len(found.Rows), broken)})
	nothing := func(int64, float64, float64) error { return nil }
	if err := found.c.Centroids(t.Context(), nothing); fault.KindOf(err) == 0 {
		t.Errorf("broken centroids: %v", err)
	}
}
