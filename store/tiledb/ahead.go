package tiledb

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/lru"
)

// Limits of the memory that a reader holds between the boxes of Ahead.
const (
	maxBatch = 4 << 20 // stored bytes that one read fetches, and that all files hold together
	// the same of a local file: another read costs less than bytes that fall out of the processor's
	// cache
	maxLocal = 256 << 10
	maxFiles = 16      // files that are read ahead of at a time
	maxAhead = 1 << 16 // tiles that are listed as needed: 512 KiB of indices
	maxKept  = 8 << 20 // decoded bytes of sparse fragments
)

// readAhead knows the boxes that will be read next: which tiles they need, and in which fragments.
type readAhead struct {
	on    bool // Ahead announced the boxes; otherwise it knows one box only
	whole Box  // the box whose parts the boxes are; nil if each is read on its own
	needs []neededTiles
	used  int // entries of needs in use
	files int // files that are read in turns: as many slots, of limit bytes each
	limit uint64
	slots [maxFiles]slot
	turn  int                         // the slot that was assigned last
	kept  *lru.Cache[tileKey, []byte] // decoded tiles of sparse fragments, if on; without content in a DryRun
}

// neededTiles are the tiles of a fragment that are needed, in ascending order; of a sparse fragment
// the tiles of its coordinates.
type neededTiles struct {
	f     *Fragment
	tiles []int64
}

// slot holds the stored bytes of some consecutive tiles of a file.
type slot struct {
	uri  string
	from uint64
	n    uint64
	buf  []byte // nil in a DryRun
}

// releaseOthers frees the memory of all other slots, to make room for a tile that is larger than
// its share.
func (h *readAhead) releaseOthers(s *slot) {
	for k := range h.slots {
		if o := &h.slots[k]; o != s {
			o.n, o.buf = 0, nil
		}
	}
}

// assign assigns the slot to a file.
func (s *slot) assign(uri string) *slot {
	if s.uri != uri {
		s.uri, s.n = uri, 0
	}
	return s
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
	left := maxAhead
	for _, b := range boxes {
		if err := a.layers(b, h.whole, func(i int) error { return h.need(ctx, a, i, b, &left) }); err != nil {
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
	h.files = 0
	for k := range h.needs[:h.used] {
		neededTiles := &h.needs[k]
		slices.Sort(neededTiles.tiles)
		neededTiles.tiles = slices.Compact(neededTiles.tiles)
		n := each
		if !neededTiles.f.Dense {
			n += len(neededTiles.f.coordParts(a.Schema))
		}
		if h.files += n; !h.on { // without an announcement, fragments are read one after the other
			h.files = max(h.files-n, n)
		}
	}
	if left < 0 {
		h.used = 0
	}
	h.share(h.files)
	return nil
}

// announce is expect for several boxes.
func (h *readAhead) announce(ctx context.Context, a *Array, attr int, boxes []Box) error {
	if !a.Schema.Dense {
		return fault.New(fault.Unsupported, "sub-array", fault.NoOffset, "the array is sparse")
	}
	for _, b := range boxes {
		if err := a.Schema.check(b); err != nil {
			return err
		}
	}
	h.on = len(boxes) > 0
	return h.expect(ctx, a, attr, boxes...)
}

// share divides the memory among the files.
func (h *readAhead) share(files int) {
	h.files = min(max(files, 1), maxFiles)
	h.limit = maxBatch / uint64(h.files)
	if files > maxFiles {
		h.limit = 0 // with so many files, bytes read ahead would be evicted before they are used
	}
	for k := range h.slots {
		if s := &h.slots[k]; k >= h.files || uint64(cap(s.buf)) > max(h.limit, 2*s.n) {
			s.buf = nil
		}
	}
}

// forget forgets the boxes and all tiles, but keeps the memory for reuse.
func (h *readAhead) forget() {
	for k := range h.slots {
		h.slots[k].uri = ""
	}
	h.used, h.turn, h.kept = 0, 0, nil
	if h.on {
		h.kept = lru.New[tileKey, []byte](maxKept)
	}
}

// need adds the tiles that a box needs of fragment i.
func (h *readAhead) need(ctx context.Context, a *Array, i int, b Box, left *int) error {
	fragment := a.Fragments[i]
	k := slices.IndexFunc(h.needs[:h.used], func(w neededTiles) bool { return w.f == fragment })
	if k < 0 {
		if k = h.used; k == len(h.needs) {
			h.needs = append(h.needs, neededTiles{})
		}
		h.used++
		h.needs[k].f, h.needs[k].tiles = fragment, h.needs[k].tiles[:0]
	}
	list := h.needs[k].tiles
	add := func(tile int64) {
		if *left--; *left >= 0 {
			list = append(list, tile)
		}
	}
	if fragment.Dense {
		w := newDenseWalk(a, i, b, layout{axes: a.axes, stride: make([]int, len(a.axes))})
		for goesOn := true; goesOn && *left >= 0; goesOn = w.next() {
			if tile := w.place(); !w.hidden() {
				add(tile)
			}
		}
	} else {
		tiles, err := a.shownTiles(ctx, i, b)
		if err != nil {
			return err
		}
		for _, tile := range tiles {
			add(tile)
		}
	}
	h.needs[k].tiles = list
	return nil
}

// needed returns the tiles of a fragment that the boxes need, in ascending order, or nil if they are not known.
func (h *readAhead) needed(f *Fragment) []int64 {
	for k := range h.needs[:h.used] {
		if w := &h.needs[k]; w.f == f {
			return w.tiles
		}
	}
	return nil
}

// slot returns the slot of a file, or assigns it the next one.
func (h *readAhead) slot(uri string) *slot {
	if h.files == 0 {
		h.share(2)
	}
	for k := range h.slots[:h.files] {
		if h.slots[k].uri == uri {
			return &h.slots[k]
		}
	}
	h.turn = (h.turn + 1) % h.files
	return h.slots[h.turn].assign(uri)
}

// held returns the bytes held in stored form and those held decoded.
func (h *readAhead) held() (stored, kept uint64) {
	for k := range h.slots[:h.files] {
		if h.slots[k].uri != "" {
			stored += h.slots[k].n
		}
	}
	if h.kept != nil {
		kept = uint64(h.kept.Used())
	}
	return stored, kept
}
