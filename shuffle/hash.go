// Package shuffle says which sample stands at a global position, and which window of it: pure
// functions of (seed, epoch, position) with O(1) time and memory, no stored permutation.
//
// docs/order.md defines every function here exactly; the Python package computes the same, and
// testdata/order.json holds vectors that both are tested against. Changing any result is a new
// version of the order (see Version) and breaks resuming.
package shuffle

import "math/bits"

// Version is the version of the order. It is part of every state and spec hash.
const Version = 1

// golden is 2^64 divided by the golden ratio, made odd: the increment of splitmix64.
const golden = 0x9E3779B97F4A7C15

// Domains keep the uses of a hash apart: equal words in different domains are independent.
const (
	domainOrder  = 1
	domainWindow = 2
)

// Mix is the finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, 2014, variant 13 of Stafford): a bijection of 64-bit words.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// Hash mixes a seed and words into one uniform 64-bit word.
func Hash(seed uint64, words ...uint64) uint64 {
	h := Mix(seed + golden)
	for _, w := range words {
		h = Mix((h ^ w) + golden)
	}
	return h
}

// Below maps a uniform word to [0, n) by its high bits: floor(h*n / 2^64). n must be positive.
func Below(h uint64, n int) int {
	hi, _ := bits.Mul64(h, uint64(n))
	return int(hi)
}
