package kernel

// OrShifted adds the numbers of from bytes in src, shifted up, to the numbers of to bytes in dst, whose bits from
// shift on are zero. It reports whether no number has more than nbits bits. dst has as many numbers as src;
// shift+nbits <= 8*to, from <= 8, 1 <= nbits <= 64.
func OrShifted(dst, src []byte, to, from, nbits, shift int) bool {
	var union uint64
	for i := range len(src) / from {
		number := LE(src, i, from)
		union |= number
		PutLE(dst, i, to, LE(dst, i, to)|number<<shift)
	}
	return union>>nbits == 0
}
