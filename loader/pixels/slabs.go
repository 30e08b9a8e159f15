package pixels

import (
	"math/bits"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/pages"
)

// slabs is memory for tiles outside of Go's heap, for caches that are large: the collector lets a heap grow to twice
// what is in use, and gives free memory back late. Tiles of about the same size lie in one slab, which goes back to the
// system as a whole.
type slabs struct {
	bytes int64           // of all slabs
	open  map[int][]*slab // slabs with free places, by the size of their places
}

// slab is memory for several tiles.
type slab struct {
	memory *pages.Memory
	size   int     // of a place
	tiles  []*tile // in each place; nil for a free one
	used   int     // places
}

// placeSize returns the size of places for tiles of n bytes: up to 1/32 more than they need, so chunks of about
// the same size, as those at the edges of strips, have places in the same slabs.
func placeSize(n int) int {
	n += chunk.Spare
	step := max(1<<max(bits.Len(uint(n))-6, 0), 64)
	return (n + step - 1) / step * step
}

// slabBytes returns the bytes of a slab of tiles of n bytes.
func slabBytes(n int) int64 {
	size := placeSize(n)
	return int64(max(pages.Worth/size, 1)) * int64(size)
}

// add makes a slab for tiles of n bytes. It reports whether the system has the memory.
func (s *slabs) add(n int) bool {
	size := placeSize(n)
	memory, err := pages.New(int(slabBytes(n)))
	if err != nil {
		return false
	}
	s.bytes += slabBytes(n)
	places := make([]*tile, slabBytes(n)/int64(size))
	s.open[size] = append(s.open[size], &slab{memory: memory, size: size, tiles: places})
	return true
}

// put gives a tile a place, if one is free.
func (s *slabs) put(t *tile) bool {
	n := int(t.bytes)
	list := s.open[placeSize(n)]
	if len(list) == 0 {
		return false
	}
	found := list[len(list)-1]
	for i, other := range found.tiles {
		if other != nil {
			continue
		}
		found.tiles[i], t.slab = t, found
		t.Samples = found.memory.Bytes()[i*found.size:][: n : n+chunk.Spare]
		break
	}
	if found.used++; found.used == len(found.tiles) {
		s.close(found)
	}
	return true
}

// close takes a slab out of the open ones.
func (s *slabs) close(old *slab) {
	list := s.open[old.size]
	for i, other := range list {
		if other == old {
			last := len(list) - 1
			list[i], list[last] = list[last], nil
			s.open[old.size] = list[:last]
			break
		}
	}
	if len(s.open[old.size]) == 0 {
		delete(s.open, old.size)
	}
}

// remove frees the place of a tile, whose memory nobody uses.
func (s *slabs) remove(t *tile) {
	owner := t.slab
	for i, other := range owner.tiles {
		if other == t {
			owner.tiles[i] = nil
		}
	}
	if owner.used == len(owner.tiles) {
		s.open[owner.size] = append(s.open[owner.size], owner)
	}
	owner.used--
	t.slab, t.Samples = nil, nil
}

// free gives a slab without tiles back to the system.
func (s *slabs) free(old *slab) {
	s.close(old)
	s.bytes -= int64(len(old.tiles) * old.size)
	old.memory.Free()
}

// freeEmpty gives slabs without tiles back until all take at most bound bytes.
func (s *slabs) freeEmpty(bound int64) {
	for _, list := range s.open {
		for i := len(list) - 1; i >= 0 && s.bytes > bound; i-- {
			if list[i].used == 0 {
				s.free(list[i]) // which puts the last one, already looked at, in its place
			}
		}
	}
}
