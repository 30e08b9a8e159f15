package vec

import "hash/maphash"

// KeySet numbers keys in the order in which they are added. It is a hash table without a pointer for each key, which a
// map of strings has and the garbage collector would follow.
type KeySet struct {
	seed   maphash.Seed
	slots  []int32 // the number of a key plus 1, 0 for an empty slot; their count is a power of two
	hashes []uint64
	ends   []int // key k is data[ends[k-1]:ends[k]]
	data   []byte
}

// NewKeySet returns an empty set.
func NewKeySet() *KeySet {
	return &KeySet{seed: maphash.MakeSeed(), slots: make([]int32, 64)}
}

func (s *KeySet) key(k int) []byte {
	if k == 0 {
		return s.data[:s.ends[0]]
	}
	return s.data[s.ends[k-1]:s.ends[k]]
}

// slot returns the slot of a key, or the empty one where it belongs.
func (s *KeySet) slot(h uint64, key []byte) int {
	mask := uint64(len(s.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		k := s.slots[i] - 1
		if k < 0 || s.hashes[k] == h && string(s.key(int(k))) == string(key) {
			return int(i)
		}
	}
}

// Find returns the number of a key, -1 if it is not in the set.
func (s *KeySet) Find(key []byte) int32 {
	return s.slots[s.slot(maphash.Bytes(s.seed, key), key)] - 1
}

// Add returns the number of a key, and whether it was added.
func (s *KeySet) Add(key []byte) (k int32, added bool) {
	hash := maphash.Bytes(s.seed, key)
	i := s.slot(hash, key)
	if k := s.slots[i] - 1; k >= 0 {
		return k, false
	}
	k = int32(len(s.ends))
	s.slots[i] = k + 1
	s.hashes = append(s.hashes, hash)
	s.data = append(s.data, key...)
	s.ends = append(s.ends, len(s.data))
	// At most half of the slots are used, so probes stay short.
	if 2*len(s.ends) > len(s.slots) {
		s.grow()
	}
	return k, true
}

func (s *KeySet) grow() {
	s.slots = make([]int32, 2*len(s.slots))
	mask := uint64(len(s.slots) - 1)
	for key, hash := range s.hashes {
		i := hash & mask
		for s.slots[i] != 0 {
			i = (i + 1) & mask
		}
		s.slots[i] = int32(key) + 1
	}
}
