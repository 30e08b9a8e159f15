package pixels

import "container/heap"

// idleTiles are the tiles that no reader holds, as a heap: the first one makes room for others first. That is the one
// that was used longest ago of those that no planned window needs, or else the one that is needed last.
type idleTiles []*tile

// notIdle is the place of a tile that a reader holds.
const notIdle = -1

// Len implements heap.Interface.
func (s idleTiles) Len() int { return len(s) }

// Less implements heap.Interface.
func (s idleTiles) Less(i, j int) bool {
	return s[i].next > s[j].next || s[i].next == s[j].next && s[i].used < s[j].used
}

// Swap implements heap.Interface.
func (s idleTiles) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push implements heap.Interface.
func (s *idleTiles) Push(x any) {
	t := x.(*tile)
	t.place = len(*s)
	*s = append(*s, t)
}

// Pop implements heap.Interface.
func (s *idleTiles) Pop() any {
	last := len(*s) - 1
	t := (*s)[last]
	(*s)[last], t.place = nil, notIdle
	*s = (*s)[:last]
	return t
}

// add adds a tile that no reader holds any more.
func (s *idleTiles) add(t *tile) { heap.Push(s, t) }

// remove takes a tile out, if it is in.
func (s *idleTiles) remove(t *tile) {
	if t.place != notIdle {
		heap.Remove(s, t.place)
	}
}

// needed notes that a tile is needed next by another window than before.
func (s *idleTiles) needed(t *tile, next int64) {
	if t.place != notIdle && t.next != next {
		t.next = next
		heap.Fix(s, t.place)
	}
}
