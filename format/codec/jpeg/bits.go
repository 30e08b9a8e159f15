package jpeg

import "encoding/binary"

// bitReader reads the bits of a scan, up to the next marker. Behind it follow zeros, which are counted.
type bitReader struct {
	src  []byte
	at   int
	acc  uint64 // its low n bits are next
	n    int
	past int // bits of acc, or before it, that src does not have
}

// fill makes n at least 57, with zeros if need be.
func (r *bitReader) fill() {
	// Eight bytes at once, unless one is 0xff: the zero that is stuffed behind it must be dropped, or a marker ends the
	// scan.
	if len(r.src)-r.at >= 8 {
		word := binary.BigEndian.Uint64(r.src[r.at:])
		// A byte is 0xff if it is 0 in the complement.
		if inverse := ^word; (inverse-0x0101010101010101)&word&0x8080808080808080 == 0 {
			size := (64 - r.n) >> 3
			r.acc = r.acc<<(8*size) | word>>(64-8*size)
			r.at += size
			r.n += 8 * size
			return
		}
	}
	for r.n <= 56 {
		next := byte(0)
		switch {
		case r.at >= len(r.src):
			r.past += 8
		case r.src[r.at] != 0xff:
			next = r.src[r.at]
			r.at++
		case r.at+1 < len(r.src) && r.src[r.at+1] == 0: // a stuffed byte
			next = 0xff
			r.at += 2
		default: // a marker, or fill bytes before one
			r.past += 8
		}
		r.acc = r.acc<<8 | uint64(next)
		r.n += 8
	}
}

// isPastEnd reports whether bits were read that are not there.
func (r *bitReader) isPastEnd() bool { return r.past > r.n }

func (r *bitReader) bit() uint32 {
	if r.n == 0 {
		r.fill()
	}
	r.n--
	return uint32(r.acc>>r.n) & 1
}

// bits returns the next k bits, at most 16.
func (r *bitReader) bits(k int) int32 {
	if r.n < k {
		r.fill()
	}
	r.n -= k
	return int32(r.acc>>r.n) & (1<<k - 1)
}

// extended returns the value of k bits that begin with a 0 if it is negative (EXTEND of ITU-T T.81, F.2.2.1).
func (r *bitReader) extended(k int) int32 {
	value := r.bits(k)
	if k > 0 && value < 1<<(k-1) {
		value += -1<<k + 1
	}
	return value
}

// symbol decodes one code. It reports false for an invalid one.
func (r *bitReader) symbol(h *huffman) (byte, bool) {
	if r.n < 16 {
		r.fill()
	}
	if entry := h.lut[r.acc>>(r.n-lutBits)&(1<<lutBits-1)]; entry != 0 {
		r.n -= int(entry >> 8)
		return byte(entry), true
	}
	return r.longSymbol(h)
}

// longSymbol decodes a code of more than lutBits.
func (r *bitReader) longSymbol(h *huffman) (byte, bool) {
	word := int32(r.acc>>(r.n-16)) & 0xffff
	length := lutBits + 1
	for word >= h.limit[length] {
		length++
	}
	if length > 16 {
		return 0, false
	}
	r.n -= length
	return h.vals[(word>>(16-length)+h.delta[length])&0xff], true
}
