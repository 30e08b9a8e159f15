package zarr

import (
	"fmt"
	"testing"

	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/arrays"
)

// TestManyArraysAreDescribed promises the first 200 arrays of a group, and the number of the others.
func TestManyArraysAreDescribed(t *testing.T) {
	var files openers.Files
	defer files.Close()
	for _, n := range []int{199, 200, 203} {
		dir := t.TempDir()
		put(t, dir, "zarr.json", `{"zarr_format":3,"node_type":"group"}`)
		for i := range n {
			put(t, dir, fmt.Sprintf("a%03d/zarr.json", i), plainArray)
		}
		node, err := Open(t.Context(), &files, dir, arrays.Options{})
		if err != nil {
			t.Fatal(err)
		}
		found, err := node.Describe(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		info := found.(*arrays.Info)
		if len(info.Arrays) != min(n, 200) || info.More != n-min(n, 200) || info.Arrays[198].Path != "a198" {
			t.Errorf("of %d arrays %d are described, %d are more", n, len(info.Arrays), info.More)
		}
	}
}
