package join

import (
	"hash/maphash"
	"strings"
)

// index finds a name by an end of it. It is a hash table of numbers, because a map of strings takes five times the
// memory.
type index struct {
	list  []string
	skip  int                      // bytes of the folders that all names share, and that a sample need not have
	form  func(name string) string // the spelling in which ends are compared
	seed  maphash.Seed
	slots []slot // two thirds of them are used at most
}

// slot has the number of a name and 1 more in its lower half, 0 if it is empty. The upper half has several, and the
// hash of the end, because a name has several ends.
type slot uint64

// several says that other names have the same end, and none of them is more of a name than the others.
const several slot = 1 << 63

func (s slot) name() int32 { return int32(uint32(s)) - 1 }

// newIndex returns an index with room for n ends.
func newIndex(list []string, skip, n int, form func(name string) string) *index {
	return &index{list, skip, form, maphash.MakeSeed(), make([]slot, n+n/2+1)}
}

// find returns the slot of an end, or the empty one where it belongs, and the hash for it.
func (x *index) find(end string) (found *slot, hash slot) {
	hash = slot(maphash.String(x.seed, end)) << 32 &^ several
	for place := int(hash >> 32 * slot(len(x.slots)) >> 31); ; place = (place + 1) % len(x.slots) { // of 31 bits
		found = &x.slots[place]
		if *found == 0 || *found>>32<<32&^several == hash && endsIn(x.form(x.list[found.name()]), end) {
			return found, hash
		}
	}
}

// get returns the slot of an end.
func (x *index) get(end string) (found slot, ok bool) {
	s, _ := x.find(end)
	return *s, *s != 0
}

// put adds the end of a name, whole or not. A whole name is nearer to the end than one that has more in front. It
// returns false for a whole name that another one is equal to.
func (x *index) put(end string, name int32, whole bool) (first bool) {
	if end == "" {
		return true
	}
	switch s, hash := x.find(end); {
	case *s == 0:
		*s = hash | slot(name+1)
	case len(x.form(x.list[s.name()])) == x.skip+len(end): // whole
		if whole {
			*s |= several
		}
		return !whole
	case whole:
		*s = hash | slot(name+1)
	default:
		*s |= several
	}
	return true
}

// endsIn reports whether a text ends in another one from a slash on.
func endsIn(text, end string) bool {
	return strings.HasSuffix(text, end) && (len(text) == len(end) || text[len(text)-len(end)-1] == '/')
}
