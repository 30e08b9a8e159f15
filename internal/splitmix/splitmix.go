// Package splitmix hashes words of 64 bits, as docs/order.md defines it.
package splitmix

import "math/bits"

// golden is 2^64 divided by the golden ratio, made odd: the increment of splitmix64.
const golden = 0x9E3779B97F4A7C15

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
		hash = Further(hash, word)
	}
	return hash
}

// Further adds one word to a hash: Hash(seed, a, b) is Further(Hash(seed, a), b).
func Further(h, w uint64) uint64 { return Mix((h ^ w) + golden) }

// Below maps a uniform word to [0, n) by its high bits: floor(h*n / 2^64). n must be positive.
func Below(h uint64, n int) int {
	return int(Below64(h, int64(n)))
}

// Below64 is Below for an int64.
func Below64(h uint64, n int64) int64 {
	hi, _ := bits.Mul64(h, uint64(n))
	return int64(hi)
}
