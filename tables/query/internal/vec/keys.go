package vec

import "hash/maphash"

// KeySet numbers keys in the order in which they first come. It is a hash table without a pointer a
// key, as a map of strings would have.
type KeySet struct {
	seed   maphash.Seed
	slots  []int32 // number of a key plus 1, 0 where there is none; a power of two of them
	hashes []uint64
	ends   []int // key k is data[ends[k-1]:ends[k]]
	data   []byte
}

func NewKeySet() *KeySet {
	return &KeySet{seed: maphash.MakeSeed(), slots: make([]int32, 64)}
}

func (s *KeySet) key(k int) []byte {
	if k == 0 {
		return s.data[:s.ends[0]]
	}
	return s.data[s.ends[k-1]:s.ends[k]]
}

// slot returns where a key is, or where it would be.
func (s *KeySet) slot(h uint64, key []byte) int {
	mask := uint64(len(s.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		k := s.slots[i] - 1
		if k < 0 || s.hashes[k] == h && string(s.key(int(k))) == string(key) {
			return int(i)
		}
	}
}

// Find returns the number of a key, -1 if it is not there.
func (s *KeySet) Find(key []byte) int32 {
	return s.slots[s.slot(maphash.Bytes(s.seed, key), key)] - 1
}

// Add returns the number of a key, and whether it is new.
func (s *KeySet) Add(key []byte) (k int32, added bool) {
	h := maphash.Bytes(s.seed, key)
	i := s.slot(h, key)
	if k := s.slots[i] - 1; k >= 0 {
		return k, false
	}
	k = int32(len(s.ends))
	s.slots[i] = k + 1
	s.hashes = append(s.hashes, h)
	s.data = append(s.data, key...)
	s.ends = append(s.ends, len(s.data))
	if 2*len(s.ends) > len(s.slots) {
		s.grow()
	}
	return k, true
}

func (s *KeySet) grow() {
	s.slots = make([]int32, 2*len(s.slots))
	mask := uint64(len(s.slots) - 1)
	for k, h := range s.hashes {
		i := h & mask
		for s.slots[i] != 0 {
			i = (i + 1) & mask
		}
		s.slots[i] = int32(k) + 1
	}
}
