package tiledb

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// Bounds of what a reader holds between the boxes of Ahead.
const (
	maxBatch = 4 << 20   // stored bytes that are read at once, and of all files together
	maxLocal = 256 << 10 // of a local file: asking again costs less than what falls out of the processor's cache
	maxFiles = 16        // files that tiles are read ahead of, at the same time
	maxAhead = 1 << 16   // tiles that are known to be needed
	maxKept  = 8 << 20   // decoded bytes of sparse fragments
)

// ahead is what a reader knows of the boxes that come: which tiles of which fragments they need. A Reader and a
// Foresight have the same one, and so read the same.
type ahead struct {
	on    bool // it was said; otherwise it is about one box
	whole Box  // that boxes are read as pieces of; nil where each is read for itself
	wants []wanted
	used  int // of wants
	files int // that are read in turns: so many slots, of limit bytes each
	limit uint64
	slots [maxFiles]slot
	turn  int // slot that was given away last
	kept  []keptTile
	bytes int // of kept
}

// wanted are the tiles that are needed of a fragment, ascending: of a sparse one, of its coordinates.
type wanted struct {
	f     *Fragment
	tiles []int64
}

// slot holds stored bytes of some tiles of a file that follow each other.
type slot struct {
	uri  string
	from uint64
	n    uint64
	buf  []byte // a Reader's
}

// alone gives back the memory of all other slots: for a tile that is larger than its part.
func (h *ahead) alone(s *slot) {
	for k := range h.slots {
		if o := &h.slots[k]; o != s {
			o.n, o.buf = 0, nil
		}
	}
}

// of makes the slot that of a file.
func (s *slot) of(uri string) *slot {
	if s.uri != uri {
		s.uri, s.n = uri, 0
	}
	return s
}

// keptTile is a decoded tile of a sparse fragment.
type keptTile struct {
	uri  string
	tile int64
	n    int
	b    []byte // a Reader's
}

// following are tiles that are needed after one: those of list, which ascend, or else all up to last.
type following struct {
	list []int64
	last int64
}

// expect says which boxes of a dense array are read next, of one attribute. What is held of other ones is forgotten. With
// several of them, their tiles have to come in the order in which they lie in files.
func (h *ahead) expect(ctx context.Context, a *Array, attr int, boxes ...Box) error {
	h.forget()
	left := maxAhead
	for _, b := range boxes {
		if err := a.layers(b, h.whole, func(i int) error { return h.want(ctx, a, i, b, &left) }); err != nil {
			return err
		}
	}
	each := 1
	if a.Schema.Attrs[attr].Var() {
		each = 2
	}
	h.files = 0
	for k := range h.wants[:h.used] {
		w := &h.wants[k]
		slices.Sort(w.tiles)
		w.tiles = slices.Compact(w.tiles)
		n := each
		if !w.f.Dense {
			n++
		}
		if h.files += n; !h.on { // one fragment after the other
			h.files = max(h.files-n, n)
		}
	}
	if left < 0 {
		h.used = 0
	}
	h.share(h.files)
	return nil
}

// about is expect for a box that is read alone, where nothing was said of those that come.
func (h *ahead) about(ctx context.Context, a *Array, attr int, b Box) error {
	if h.on {
		return nil
	}
	return h.expect(ctx, a, attr, b)
}

// say is expect for several boxes.
func (h *ahead) say(ctx context.Context, a *Array, attr int, boxes []Box) error {
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

// share gives each of some files its part of what may be held.
func (h *ahead) share(files int) {
	h.files = min(max(files, 1), maxFiles)
	h.limit = maxBatch / uint64(h.files)
	if files > maxFiles {
		h.limit = 0 // what is read ahead would be gone before its turn
	}
	for k := range h.slots {
		if s := &h.slots[k]; k >= h.files || uint64(cap(s.buf)) > max(h.limit, 2*s.n) {
			s.buf = nil
		}
	}
}

// forget forgets all but the memory.
func (h *ahead) forget() {
	for k := range h.slots {
		h.slots[k].uri = ""
	}
	h.used, h.turn, h.bytes = 0, 0, 0
	h.kept = h.kept[:0]
}

// want notes the tiles that a box needs of fragment i.
func (h *ahead) want(ctx context.Context, a *Array, i int, b Box, left *int) error {
	f := a.Fragments[i]
	k := slices.IndexFunc(h.wants[:h.used], func(w wanted) bool { return w.f == f })
	if k < 0 {
		if k = h.used; k == len(h.wants) {
			h.wants = append(h.wants, wanted{})
		}
		h.used++
		h.wants[k].f, h.wants[k].tiles = f, h.wants[k].tiles[:0]
	}
	list := h.wants[k].tiles
	add := func(tile int64) {
		if *left--; *left >= 0 {
			list = append(list, tile)
		}
	}
	if f.Dense {
		w := newDenseWalk(a, i, b, layout{axes: a.axes, stride: make([]int, len(a.axes))})
		for more := true; more && *left >= 0; more = w.next() {
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
	h.wants[k].tiles = list
	return nil
}

// after returns the tiles of a fragment that are needed after one, or other, where that is not known.
func (h *ahead) after(f *Fragment, tile int64, other following) following {
	for k := range h.wants[:h.used] {
		if w := &h.wants[k]; w.f == f {
			if at, ok := slices.BinarySearch(w.tiles, tile); ok {
				return following{list: w.tiles[at+1:]}
			}
		}
	}
	return other
}

// slot returns that of a file: the one that it has, or the next one.
func (h *ahead) slot(uri string) *slot {
	if h.files == 0 {
		h.share(2)
	}
	for k := range h.slots[:h.files] {
		if h.slots[k].uri == uri {
			return &h.slots[k]
		}
	}
	h.turn = (h.turn + 1) % h.files
	return h.slots[h.turn].of(uri)
}

// held returns the stored bytes that are held, and the decoded ones.
func (h *ahead) held() (stored, kept uint64) {
	for k := range h.slots[:h.files] {
		if h.slots[k].uri != "" {
			stored += h.slots[k].n
		}
	}
	return stored, uint64(h.bytes)
}

// find returns a decoded tile that was kept, or nil.
func (h *ahead) find(uri string, tile int64) *keptTile {
	for k := range h.kept {
		if t := &h.kept[k]; t.tile == tile && t.uri == uri {
			return t
		}
	}
	return nil
}

// keep returns a place for a decoded tile, in that of the oldest ones where there is no other; nil where it is too large.
func (h *ahead) keep(uri string, tile int64, n int) *keptTile {
	if n > maxKept {
		return nil
	}
	var memory []byte
	for h.bytes+n > maxKept {
		h.bytes -= h.kept[0].n
		memory, h.kept = h.kept[0].b, slices.Delete(h.kept, 0, 1)
	}
	if k := len(h.kept); memory == nil && k < cap(h.kept) {
		memory = h.kept[:k+1][k].b // of an earlier box
	}
	h.kept = append(h.kept, keptTile{uri, tile, n, memory[:0]})
	h.bytes += n
	return &h.kept[len(h.kept)-1]
}
