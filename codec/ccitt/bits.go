package ccitt

// bitReader reads bits, the most significant of a byte first. Behind src follow zeros.
type bitReader struct {
	src []byte
	pos int // in bits
}

// peek returns the next n bits, at most 16.
func (r *bitReader) peek(n int) uint32 {
	index := r.pos >> 3
	var word uint32
	if index+3 <= len(r.src) {
		word = uint32(r.src[index])<<16 | uint32(r.src[index+1])<<8 | uint32(r.src[index+2])
	} else {
		for next := range 3 {
			word <<= 8
			if index+next < len(r.src) {
				word |= uint32(r.src[index+next])
			}
		}
	}
	return word >> (24 - n - r.pos&7) & (1<<n - 1)
}

func (r *bitReader) drop(n int) { r.pos += n }

// align passes over bits up to the next byte.
func (r *bitReader) align() { r.pos = (r.pos + 7) &^ 7 }

// ended reports whether no bits are left, past whether bits were dropped that src does not have.
func (r *bitReader) ended() bool { return r.pos >= 8*len(r.src) }
func (r *bitReader) past() bool  { return r.pos > 8*len(r.src) }

// zeros returns where the zeros end that are next.
func (r *bitReader) zeros() int {
	pos := r.pos
	for ; pos < 8*len(r.src); pos++ {
		if pos&7 == 0 && r.src[pos>>3] == 0 {
			pos += 7
		} else if r.src[pos>>3]<<(pos&7)&0x80 != 0 {
			break
		}
	}
	return pos
}

// onlyZeros reports whether no ones are left.
func (r *bitReader) onlyZeros() bool { return r.zeros() >= 8*len(r.src) }

// atMark reports whether the mark of a row is next: at least 11 zeros, and a one.
func (r *bitReader) atMark() bool {
	pos := r.zeros()
	return pos < 8*len(r.src) && pos-r.pos >= eolBits-1
}

// skipMark passes over a mark. It reports false if none is next.
func (r *bitReader) skipMark() bool {
	if !r.atMark() {
		return false
	}
	r.pos = r.zeros() + 1
	return true
}
