package kernel

// LZ fills dst from literals and, for each sequence, an offset, a number of literals and the length of a
// match; each of the three streams has a width of its own. Literals that are left come last. It reports
// whether the result has exactly len(dst) bytes.
func LZ(dst, literals, offsets, lits, matches []byte, offsetWidth, litWidth, matchWidth int) bool {
	pos := 0
	for i := range len(offsets) / offsetWidth {
		nlit, nmatch := LE(lits, i, litWidth), LE(matches, i, matchWidth)
		offset := LE(offsets, i, offsetWidth)
		if nlit > uint64(len(literals)) || nlit > uint64(len(dst)-pos) {
			return false
		}
		copy(dst[pos:], literals[:nlit])
		literals = literals[nlit:]
		pos += int(nlit)
		if offset == 0 || offset > uint64(pos) || nmatch > uint64(len(dst)-pos) {
			return false
		}
		CopyMatch(dst, pos, int(offset), int(nmatch))
		pos += int(nmatch)
	}
	return pos+len(literals) == len(dst) && copy(dst[pos:], literals) == len(literals)
}

// MuxLengths splits every byte of muxed into a number for lits, its lowest split bits, and one for matches,
// the other bits plus bias. If either has all bits set, the next number of long is added, first for lits.
// It reports whether that takes exactly the numbers in long. All but muxed are numbers of width bytes.
func MuxLengths(lits, matches, muxed, long []byte, width int, split uint, bias uint64) bool {
	maxLit, maxMatch := uint64(1)<<split-1, uint64(1)<<(8-split)-1
	used, count := 0, len(long)/width
	for i, pair := range muxed {
		lit, match := uint64(pair)&maxLit, uint64(pair)>>split
		extended := match == maxMatch
		match += bias
		if lit == maxLit {
			if used == count {
				return false
			}
			lit += LE(long, used, width)
			used++
		}
		if extended {
			if used == count {
				return false
			}
			match += LE(long, used, width)
			used++
		}
		PutLE(lits, i, width, lit)
		PutLE(matches, i, width, match)
	}
	return used == count
}
