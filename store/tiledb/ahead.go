package tiledb

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/store/internal/ahead"
)

// Limits of the memory that a reader holds between the boxes of Ahead.
const (
	maxBatch = ahead.MaxRun // stored bytes that all files hold together
	maxAhead = 1 << 18      // tiles that are listed as needed: 2 MiB of indices
	maxKept  = 8 << 20      // decoded bytes of sparse fragments
)

// readAhead knows the boxes that will be read next: which tiles they need, and in which fragments.
type readAhead struct {
	on    bool // Ahead announced the boxes; otherwise it knows one box only
	outer Box  // the box whose parts the boxes are; nil if each is read on its own
	// needs has the tiles of each fragment that are needed, in ascending order; of a sparse fragment the tiles of its
	// coordinates. It is nil if they are not known.
	needs        map[*Fragment][]int64
	limit        int64 // bytes that one read fetches
	ranges       ahead.Ranges
	decodedTiles *lru.Cache[tileKey, []byte] // decoded tiles of sparse fragments, if on; without content in a DryRun
}

// tileKey is a tile of a file.
type tileKey struct {
	uri  string
	tile int64
}

// expect announces the boxes of one attribute of a dense array that will be read next, and forgets
// the earlier ones. The tiles of several boxes must come in their order in the files.
func (h *readAhead) expect(ctx context.Context, a *Array, attr int, boxes ...Box) error {
	h.forget()
	h.needs = map[*Fragment][]int64{}
	listed := 0
	for _, box := range boxes {
		err := a.layers(box, h.outer, func(i int) error {
			tiles, err := a.tilesOf(ctx, i, box, maxAhead-listed)
			h.needs[a.Fragments[i]] = append(h.needs[a.Fragments[i]], tiles...)
			listed += len(tiles)
			return err
		})
		if err != nil {
			return err
		}
	}
	each := 1
	if a.Schema.Attrs[attr].Var() {
		each = 2
	}
	if a.Schema.Attrs[attr].Nullable {
		each++
	}
	files := 0 // that are read in turns
	for fragment, tiles := range h.needs {
		slices.Sort(tiles)
		h.needs[fragment] = slices.Compact(tiles)
		parts := each
		if !fragment.Dense {
			parts += len(fragment.coordParts(a.Schema))
		}
		if h.on {
			files += parts
		} else { // without an announcement, fragments are read one after the other
			files = max(files, parts)
		}
	}
	if listed >= maxAhead {
		h.needs = nil
	}
	h.share(files)
	return nil
}

// share divides the memory among files that are read in turns, so none evicts the bytes of another.
func (h *readAhead) share(files int) { h.limit = maxBatch / int64(max(files, 1)) }

// forget forgets the boxes and all tiles, but keeps the memory for reuse.
func (h *readAhead) forget() {
	h.ranges.Forget()
	h.needs, h.decodedTiles = nil, nil
	if h.on {
		h.decodedTiles = lru.New[tileKey, []byte](maxKept)
	}
}

// tilesOf returns the tiles of fragment i that a box needs, if these are fewer than most. Otherwise it returns at least
// as many.
func (a *Array) tilesOf(ctx context.Context, i int, b Box, most int) (tiles []int64, err error) {
	if !a.Fragments[i].Dense {
		return a.shownTiles(ctx, i, b)
	}
	for tile := range newDenseWalk(a, i, b, layout{axes: a.axes, stride: make([]int, len(a.axes))}).tiles() {
		if tiles = append(tiles, tile); len(tiles) >= most {
			break
		}
	}
	return tiles, nil
}

// expected returns the tiles of a fragment that the boxes need, if the given ones are among them. Otherwise it returns
// the given ones, which as many files have that are read in turns.
func (h *readAhead) expected(f *Fragment, tiles []int64, files int) []int64 {
	if needed := h.needs[f]; slices.Contains(needed, tiles[0]) {
		return needed
	}
	h.share(files)
	return tiles
}

// memory returns the bytes of memory in stored form, and of decoded tiles.
func (h *readAhead) memory() (stored, kept uint64) {
	if h.decodedTiles != nil {
		kept = uint64(h.decodedTiles.Used())
	}
	return uint64(h.ranges.Held()), kept
}
