package tiledb

import (
	"context"
	"slices"
)

// A sparse fragment of a dense array may lie under a later dense fragment that holds the same cells. Both versions of
// TileDB's library (1.6.3 and 2.30) agree on what a read returns then, but it is not simply the cells of the later
// fragment. The rule depends on the bounding box of each tile of the sparse fragment:
//
//   - if one later dense fragment covers the whole box of the tile, none of its cells show;
//   - otherwise, if the whole box of the tile lies in the box that is read, all of its cells show, even
//     those under later fragments;
//   - otherwise those cells show that no later dense fragment holds.
//
// So the value of a cell depends on the box that is read. Images are read as if each image was read as
// a whole, so a window of an image has the same pixels as the image. Consolidation reads the whole
// array, as the library does. TestSparseUnderDense compares this with both libraries.

// findShadowed finds the sparse fragments that lie under later dense ones.
func (a *Array) findShadowed() {
	a.shadowed, a.anyShadowed = make([]bool, len(a.Fragments)), false
	dense := false
	for i := len(a.Fragments) - 1; i >= 0; i-- {
		a.shadowed[i] = dense && !a.Fragments[i].Dense
		a.anyShadowed = a.anyShadowed || a.shadowed[i]
		dense = dense || a.Fragments[i].Dense
	}
}

// layers calls do for the fragments that show in a box, the earliest one first, and all dense
// fragments before all sparse ones: dense fragments do not hide those cells of earlier sparse ones
// that show. whole is the box that b is read as a part of, or nil.
func (a *Array) layers(b, whole Box, do func(i int) error) (err error) {
	begin, _ := a.start(b)
	sparse := begin
	if whole != nil {
		sparse, _ = a.start(whole)
	}
	for _, dense := range []bool{true, false} {
		if !dense {
			begin = sparse
		}
		for i := begin; i < len(a.Fragments) && err == nil; i++ {
			if f := a.Fragments[i]; f.Dense == dense && f.NonEmpty.intersects(b) {
				err = do(i)
			}
		}
	}
	return err
}

// shownTiles returns the tiles of sparse fragment i with cells that may show in a box, in ascending order.
func (a *Array) shownTiles(ctx context.Context, i int, b Box) (tiles []int64, err error) {
	tree, err := a.rtree(ctx, a.Fragments[i])
	if err != nil {
		return nil, err
	}
	boxes := tree.levels[len(tree.levels)-1]
	tree.tiles(b, func(t int64) {
		hides := func(later *Fragment) bool { return later.Dense && later.NonEmpty.covers(boxes[t]) }
		if !a.shadowed[i] || !slices.ContainsFunc(a.Fragments[i+1:], hides) {
			tiles = append(tiles, t)
		}
	})
	return tiles, nil
}

// start returns the index of the first fragment that shows in a box, and whether the fragments from
// there on cover the box. Fragments before a dense one that covers the box do not show.
func (a *Array) start(b Box) (from int, covered bool) {
	for i := len(a.Fragments) - 1; i >= 0; i-- {
		if f := a.Fragments[i]; f.Dense && f.NonEmpty.covers(b) {
			return i, true
		}
	}
	return 0, false
}
