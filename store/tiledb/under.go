package tiledb

import (
	"context"
	"slices"
)

// What a sparse fragment of a dense array holds is under a later dense fragment that has the same cells. Both versions of TileDB's
// library (1.6.3 and 2.30) read such cells alike, but do not simply let the later fragment win. Of a tile of the sparse fragment,
// by the box of its cells:
//
//   - where one later dense fragment holds all of the tile's box, nothing of the tile shows;
//   - else, where all of the tile's box lies in the box that is read, all of its cells show, those under later fragments too;
//   - else those of its cells show that no later dense fragment holds.
//
// Thus it depends on the box that is read whether a cell shows. An image is read as a whole in this, so that windows of it are cut
// out of it however they are read; and all of the array where fragments are consolidated, as the library does.
// TestSparseUnderDense holds this to both libraries.

// findUnder notes which sparse fragments lie under later dense ones.
func (a *Array) findUnder() {
	a.under, a.mixed = make([]bool, len(a.Fragments)), false
	dense := false
	for i := len(a.Fragments) - 1; i >= 0; i-- {
		a.under[i] = dense && !a.Fragments[i].Dense
		a.mixed = a.mixed || a.under[i]
		dense = dense || a.Fragments[i].Dense
	}
}

// layers calls do for the fragments that show in a box, the first one first: sparse ones after all dense ones, whose cells they
// do not hide but where they show. whole is the box that b is read as a piece of, or nil.
func (a *Array) layers(b, whole Box, do func(i int) error) (err error) {
	from, _ := a.start(b)
	sparse := from
	if whole != nil {
		sparse, _ = a.start(whole)
	}
	for _, dense := range []bool{true, false} {
		if !dense {
			from = sparse
		}
		for i := from; i < len(a.Fragments) && err == nil; i++ {
			if f := a.Fragments[i]; f.Dense == dense && f.NonEmpty.intersects(b) {
				err = do(i)
			}
		}
	}
	return err
}

// shownTiles returns the tiles of sparse fragment i that show in a box, ascending.
func (a *Array) shownTiles(ctx context.Context, i int, b Box) (tiles []int64, err error) {
	tree, err := a.rtree(ctx, a.Fragments[i])
	if err != nil {
		return nil, err
	}
	boxes := tree.levels[len(tree.levels)-1]
	tree.tiles(b, func(t int64) {
		if !a.under[i] || !a.hides(i, boxes[t]) {
			tiles = append(tiles, t)
		}
	})
	return tiles, nil
}

// hides reports whether a dense fragment after i holds all of a box.
func (a *Array) hides(i int, b Box) bool {
	return slices.ContainsFunc(a.Fragments[i+1:], func(g *Fragment) bool { return g.Dense && g.NonEmpty.covers(b) })
}

// start returns the first fragment that shows in a box that is read, and whether the fragments cover it: what lies
// below a dense fragment that covers all of it does not show.
func (a *Array) start(b Box) (from int, covered bool) {
	for i := len(a.Fragments) - 1; i >= 0; i-- {
		if f := a.Fragments[i]; f.Dense && f.NonEmpty.covers(b) {
			return i, true
		}
	}
	return 0, false
}
