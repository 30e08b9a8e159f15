package zarr

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/source"
)

// TestReferencesToGroups: arrays in a group of HDF5 are images by the names of their dimensions behind those of the
// group, with the place that the group's scales give, in references that kerchunk wrote.
func TestReferencesToGroups(t *testing.T) {
	var files source.Files
	defer files.Close()
	want := [6]float64{10, 1, 0, 51, 0, -1}
	for _, store := range []string{"product.json", "product.parq"} {
		for _, c := range []struct{ node, array string }{
			{"", "PRODUCT/v"}, {"", "PRODUCT/m"}, {"/PRODUCT", "v"}, {"/PRODUCT", "m"},
		} {
			n, err := Open(t.Context(), &files, "testdata/groups/"+store+c.node, Options{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := n.Raster(t.Context(), "image", c.array, "")
			if err != nil {
				t.Errorf("%s%s: %v", store, c.node, err)
				continue
			}
			a := r.Arrays()[0]
			if axes := a.Axes(""); !slices.Equal(axes[len(axes)-2:], []string{"y", "x"}) {
				t.Errorf("%s %s: axes %v", store, c.array, axes)
			}
			if p := n.Place(t.Context(), a); p.Transform == nil || *p.Transform != want {
				t.Errorf("%s%s %s: transform %v, want %v", store, c.node, c.array, p.Transform, want)
			}
			first, strides := make([]int64, len(a.Shape)), []int64{240, 40, 4}[3-len(a.Shape):]
			b := make([]byte, 240)
			if err := a.NewReader().ReadInto(t.Context(), b, first, a.Shape, strides); err != nil {
				t.Fatal(err)
			}
			for i := range 60 {
				if got := math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])); got != float32(i) {
					t.Fatalf("%s %s: cell %d is %v", store, c.array, i, got)
				}
			}
		}
	}
}
