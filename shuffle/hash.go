// Package shuffle computes which sample is at a global position, and which window of it: pure
// functions of (seed, epoch, position) with O(1) time and memory, no stored permutation.
//
// A Spec of datasets (rows, subsets of rows, sequences in time), their samplers (whole chips; random, grid, resized and
// weighted windows; visits tile by tile; windows on the ground) and mixtures of them is compiled to a Plan. Plan.At
// returns the sample at a position, Plan.Window its window once the asset's size is known, and Plan.Substitute the
// substitute of a bad sample. They are built on Order, Window, Ticket and State. Split makes the subsets.
//
// Not supported: weighted, resized or grid windows in the tile-aware order; drawing assets in
// proportion to their weights, except by a mixture of strata.
//
// docs/order.md defines every function here exactly. The Python package computes the order and random windows too, and
// both are tested against the vectors in testdata/order.json. A change of any result needs a new Version
// and breaks resuming.
package shuffle

import "math/bits"

// Version is the version of the order. It is part of every state and spec hash.
const Version = 1

// golden is 2^64 divided by the golden ratio, made odd: the increment of splitmix64.
const golden = 0x9E3779B97F4A7C15

// Domains keep the uses of a hash apart: equal words in different domains are independent.
const (
	// The numbers are part of the order: they must not change, and new domains get new numbers,
	// otherwise two uses would draw the same words.
	domainOrder      = 1
	domainWindow     = 2
	domainResized    = 3
	domainWeighted   = 4
	domainText       = 5
	domainCell       = 6
	domainSource     = 7
	domainWord       = 8
	domainPool       = 9
	domainVisit      = 10
	domainCorner     = 11
	domainTransform  = 12
	domainSubstitute = 13
	domainBatch      = 14
	domainGround     = 15
	domainBlock      = 16
	domainSide       = 17
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
	hash := Mix(seed + golden)
	for _, word := range words {
		hash = further(hash, word)
	}
	return hash
}

// further adds one word to a hash: Hash(seed, a, b) is further(Hash(seed, a), b).
func further(h, w uint64) uint64 { return Mix((h ^ w) + golden) }

// Below maps a uniform word to [0, n) by its high bits: floor(h*n / 2^64). n must be positive.
func Below(h uint64, n int) int {
	return int(below(h, int64(n)))
}

func below(h uint64, n int64) int64 {
	hi, _ := bits.Mul64(h, uint64(n))
	return int64(hi)
}
