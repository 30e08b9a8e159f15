//go:build amd64 && !purego && !twins

package whole

// double makes the entries of seconds for k bits from those for a bit less.
func (h *huffman) double(k int) {
	if !hasLoop {
		h.doubleInGo(k)
		return
	}
	double(&h.seconds[1<<k], &h.seconds[1<<(k-1)], 1<<(k-1))
}

// pairs makes the entries from at on, of first symbols whose codes have so many bits.
func (h *huffman) pairs(at, length int, firsts []uint8) {
	if !hasLoop {
		h.pairsInGo(at, length, firsts)
		return
	}
	behind := lookBits - length
	pairs(&h.looks[at], &h.seconds[1<<behind], 1<<behind, &firsts[0], len(firsts), first(0, length))
}

// loop decodes the first n streams until one of them must not have another turn. All may have one.
func (h *huffman) loop(dst, src []byte, streams *[4]codes, n int) {
	decode(&h.looks, streams, n, &src[0], &dst[0])
}

// double writes each of the n entries at from twice to to. It reads up to 8 entries, and writes up to 16, if n is less.
//
//go:noescape
func double(to, from *symbols, n int)

// pairs adds to each of n symbols e and all entries of seconds, of which there are run, a power of two. It reads and
// writes up to 8 entries if run is less.
//
//go:noescape
func pairs(to, seconds *symbols, run int, firsts *uint8, n int, e symbols)

// decode is the loop for n streams, 1 to 4. The words of all four must be in src.
//
//go:noescape
func decode(looks *[1<<lookBits + rowSlack]symbols, streams *[4]codes, n int, src, dst *byte)
