//go:build amd64 && !purego && !twins

package whole

// double makes the entries of seconds for k bits from those for a bit less.
func (h *huffman) double(k int) {
	if !hasLoop {
		h.doubleInGo(k)
		return
	}
	double(&h.seconds, 1<<(k-1))
}

// pairs makes the entries from at on, of first symbols whose codes have so many bits.
func (h *huffman) pairs(at, length int, firsts []uint8) {
	if !hasLoop {
		h.pairsInGo(at, length, firsts)
		return
	}
	behind := lookBits - length
	pairs(&h.looks, &h.seconds, at, 1<<behind, &firsts[0], len(firsts), one(length))
}

// loop decodes the first n streams until one of them must not have so many turns more. All may have them.
func (h *huffman) loop(dst, src []byte, streams *[4]codes, n, turns int) {
	decode(&h.looks, streams, n, turns, &src[0], &dst[0])
}

// double writes each of the n entries at n twice to 2n. It reads 16 entries, and writes 32, if n is less.
//
//go:noescape
func double(seconds *looks, n int)

// pairs writes entries of n first symbols at `at`, each with the run entries of seconds. It reads and writes 16
// entries if run is less.
//
//go:noescape
func pairs(to, seconds *looks, at, run int, firsts *uint8, n int, one uint8)

// decode is the loop for n streams, 1 to 4. The words of all four must be in src.
//
//go:noescape
func decode(looks *looks, streams *[4]codes, n, turns int, src, dst *byte)
