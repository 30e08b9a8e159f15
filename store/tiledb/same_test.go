package tiledb

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
)

// TestSamePlaces: an array by libtiledb 1.6.3 that let the same coordinates pass more than once in a fragment. The
// later fragment wins, with all of its cells: so reads libtiledb 2.30.
func TestSamePlaces(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join("testdata", "same_places")
	read := func(lo, hi int64) (cells [][2]int64) {
		var files Files
		defer files.Close()
		a, err := Open(ctx, &files, dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.NewReader().Sparse(ctx, []int{0}, Box{{Int32.CoordOf(lo), Int32.CoordOf(hi)}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.N {
			cells = append(cells, [2]int64{Int32.Int(Int32.Coord(got.Coords[4*i:])),
				Int32.Int(Int32.Coord(got.Values[0].Data[4*i:]))})
		}
		return cells
	}
	all := [][2]int64{{1, 60}, {5, 1}, {5, 2}, {7, 20}, {9, 40}, {9, 70}, {30, 3}, {30, 4}}
	if got := read(0, 99); !slices.Equal(got, all) {
		t.Errorf("%v, want %v", got, all)
	}
	if got := read(6, 29); !slices.Equal(got, all[3:6]) {
		t.Errorf("%v, want %v", got, all[3:6])
	}
}

// TestLaterFragments: fragments of format 22 in arrays of format 3, which libtiledb 2.30 made of
// fragments in the corpus, have the same cells. Their coordinates have no filters.
func TestLaterFragments(t *testing.T) {
	for dir, made := range map[string]string{"plain": "sparse_var", "encrypted": "encrypted_sparse"} {
		files, o := localFiles(t), Options{}
		if dir == "encrypted" {
			o.Key = []byte("0123456789abcdeF0123456789abcdeF")
		}
		var cells [2][]Values
		for i, path := range []string{
			filepath.Join("testdata", "later_fragment", dir),
			filepath.Join("..", "..", "testdata", "tiledb", "arrays", made),
		} {
			a, err := Open(t.Context(), files, path, o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Verify(t.Context()); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			cells[i] = everything(t, a)
		}
		if !slices.EqualFunc(cells[0], cells[1], sameValues) {
			t.Errorf("%s: %v, want %v", dir, cells[0], cells[1])
		}
	}
}
