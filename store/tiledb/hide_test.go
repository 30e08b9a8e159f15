package tiledb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// joined is a fragment of the array "times-dense" that has the cells of the times 10 to 30.
const joined = "__15_30_00000000000000000000000000000004"

// several opens an array of three dense fragments that lie over each other, and returns the path of one that has the
// cells of all three.
func several(t *testing.T) (a *Array, merged string) {
	t.Helper()
	path := corpus.Known(t, "times-dense")
	merged = filepath.Join(t.TempDir(), joined)
	last := filepath.Join(path, "__40_40_00000000000000000000000000000003")
	if err := errors.Join(os.Rename(filepath.Join(path, joined), merged), os.RemoveAll(last)); err != nil {
		t.Fatal(err)
	}
	return openLocal(t, path, Options{}), merged
}

// openLocal opens a local array.
func openLocal(t *testing.T, path string, o Options) *Array {
	t.Helper()
	a, err := Open(t.Context(), localFiles(t), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func sameValues(a, b Values) bool {
	return string(a.Data) == string(b.Data) && slices.Equal(a.Offsets, b.Offsets)
}

// TestFragmentsThatHide: which fragments libtiledb 1.6.3 reads, of the times in their names.
func TestFragmentsThatHide(t *testing.T) {
	for _, c := range []struct {
		times [3][2]uint64
		keeps []int
	}{
		{[3][2]uint64{{1, 5}, {3, 8}, {4, 4}}, []int{0, 1}},
		{[3][2]uint64{{1, 8}, {2, 5}, {9, 9}}, []int{0, 2}},
		{[3][2]uint64{{1, 5}, {5, 9}, {5, 5}}, []int{0, 1}},
		{[3][2]uint64{{2, 2}, {1, 3}, {2, 5}}, []int{1, 2}},
		{[3][2]uint64{{1, 4}, {1, 7}, {4, 7}}, []int{1}},
		{[3][2]uint64{{1, 5}, {1, 5}, {6, 6}}, []int{0, 2}},
		{[3][2]uint64{{3, 3}, {1, 5}, {1, 5}}, []int{1}},
		{[3][2]uint64{{1, 7}, {1, 5}, {1, 7}}, []int{0}},
	} {
		var all, want []*Fragment
		for k, at := range c.times {
			all = append(all, &Fragment{Name: fmt.Sprintf("__%d_%d_%032d", at[0], at[1], k), From: at[0], To: at[1]})
		}
		for _, k := range c.keeps {
			want = append(want, all[k])
		}
		keep, hidden := (&Array{}).hide(slices.Clone(all), nil)
		if !slices.Equal(keep, want) || len(keep)+len(hidden) != 3 {
			t.Errorf("%v: %d kept, want %v", c.times, len(keep), c.keeps)
		}
	}
}
