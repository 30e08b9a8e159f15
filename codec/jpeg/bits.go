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
	if len(r.src)-r.at >= 8 {
		w := binary.BigEndian.Uint64(r.src[r.at:])
		// A byte is 0xff if it is 0 in the complement.
		if v := ^w; (v-0x0101010101010101)&w&0x8080808080808080 == 0 {
			k := (64 - r.n) >> 3
			r.acc = r.acc<<(8*k) | w>>(64-8*k)
			r.at += k
			r.n += 8 * k
			return
		}
	}
	for r.n <= 56 {
		b := byte(0)
		switch {
		case r.at >= len(r.src):
			r.past += 8
		case r.src[r.at] != 0xff:
			b = r.src[r.at]
			r.at++
		case r.at+1 < len(r.src) && r.src[r.at+1] == 0: // a stuffed byte
			b = 0xff
			r.at += 2
		default: // a marker, or fill bytes before one
			r.past += 8
		}
		r.acc = r.acc<<8 | uint64(b)
		r.n += 8
	}
}

// ended reports whether bits were read that are not there.
func (r *bitReader) ended() bool { return r.past > r.n }

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
	v := r.bits(k)
	if k > 0 && v < 1<<(k-1) {
		v += -1<<k + 1
	}
	return v
}

// symbol decodes one code. It reports false for an invalid one.
func (r *bitReader) symbol(h *huffman) (byte, bool) {
	if r.n < 16 {
		r.fill()
	}
	if e := h.lut[r.acc>>(r.n-lutBits)&(1<<lutBits-1)]; e != 0 {
		r.n -= int(e >> 8)
		return byte(e), true
	}
	return r.longSymbol(h)
}

// longSymbol decodes a code of more than lutBits.
func (r *bitReader) longSymbol(h *huffman) (byte, bool) {
	v := int32(r.acc>>(r.n-16)) & 0xffff
	k := lutBits + 1
	for v >= h.limit[k] {
		k++
	}
	if k > 16 {
		return 0, false
	}
	r.n -= k
	return h.vals[(v>>(16-k)+h.delta[k])&0xff], true
}
