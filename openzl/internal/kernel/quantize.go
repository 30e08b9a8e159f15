package kernel

import "encoding/binary"

// Quantizer says what a code stands for: a base and how many extra bits are added to it.
type Quantizer struct {
	base  [256]uint32
	bits  [256]uint8
	codes int
}

// The two quantizers of OpenZL.
var (
	OffsetCodes = newQuantizer(0, 32)
	LengthCodes = newQuantizer(16, 44)
)

// newQuantizer makes a quantizer in which codes below small, a power of two or 0, stand for
// themselves and the others for powers of two from small, or from 1, on.
func newQuantizer(small, codes int) Quantizer {
	q := Quantizer{codes: codes}
	power := 0
	for 1<<power < small {
		power++
	}
	for k := range codes {
		if k < small {
			q.base[k] = uint32(k)
			continue
		}
		p := k - small + power
		q.base[k], q.bits[k] = 1<<p, uint8(p)
	}
	return q
}

// Decode writes one 32-bit number for every code to dst, taking the extra bits from extra, lowest
// first. It reports whether all codes exist and extra has the bits.
func (q *Quantizer) Decode(dst, codes, extra []byte) bool {
	dst = dst[:4*len(codes)]
	pos, i := 0, 0
	// One word holds at least 57 bits, which is enough for any one code and for most pairs.
	for ; i+2 <= len(codes) && pos>>3+8 <= len(extra); i += 2 {
		k, l := codes[i], codes[i+1]
		n, m := q.bits[k], q.bits[l]
		if int(max(k, l)) >= q.codes || n+m > 57 {
			break
		}
		w := binary.LittleEndian.Uint64(extra[pos>>3:]) >> (pos & 7)
		a := q.base[k] + uint32(w&(1<<(n&63)-1))
		b := q.base[l] + uint32(w>>(n&63)&(1<<(m&63)-1))
		binary.LittleEndian.PutUint64(dst[4*i:4*i+8], uint64(a)|uint64(b)<<32)
		pos += int(n + m)
	}
	for ; i < len(codes) && pos>>3+8 <= len(extra); i++ {
		k := codes[i]
		if int(k) >= q.codes {
			return false
		}
		w := binary.LittleEndian.Uint64(extra[pos>>3:]) >> (pos & 7)
		n := q.bits[k]
		binary.LittleEndian.PutUint32(dst[4*i:4*i+4], q.base[k]+uint32(w&(1<<(n&63)-1)))
		pos += int(n)
	}
	for ; i < len(codes); i++ {
		k := codes[i]
		if int(k) >= q.codes {
			return false
		}
		var w uint64
		for j := range 5 {
			if p := pos>>3 + j; p < len(extra) {
				w |= uint64(extra[p]) << (8 * j)
			}
		}
		n := q.bits[k]
		w = w >> (pos & 7) & (1<<(n&63) - 1)
		binary.LittleEndian.PutUint32(dst[4*i:4*i+4], q.base[k]+uint32(w))
		if pos += int(n); pos > 8*len(extra) {
			return false
		}
	}
	return true
}
