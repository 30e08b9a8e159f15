package kernel

import "encoding/binary"

// Quantizer maps a code to a base and a number of extra bits. A code that does not exist has more bits than
// any two codes together, so that the sum of a pair shows it.
type Quantizer struct {
	base  [256]uint32
	bits  [256]uint8
	codes int
}

// maxPairBits is how many bits of a 64-bit word can be used if its bits begin anywhere in the first byte: 64
// - 7.
const maxPairBits = 57

// The two quantizers of OpenZL.
var (
	OffsetCodes = newQuantizer(0, 32)
	LengthCodes = newQuantizer(16, 44)
)

// newQuantizer returns a quantizer in which codes below small, a power of two or 0, mean themselves, and the
// others mean powers of two from small, or from 1, on.
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
	for k := codes; k < len(q.bits); k++ {
		q.bits[k] = maxPairBits + 1
	}
	return q
}

// Decode writes a 32-bit number for every code to dst, and takes the extra bits from extra, lowest first. It
// reports whether all codes exist and extra has enough bits.
func (q *Quantizer) Decode(dst, codes, extra []byte) bool {
	dst = dst[:4*len(codes)]
	i, pos := q.pairs(dst, codes, extra)
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

// pairsGo decodes two codes at a time, because one word holds the bits of most pairs. It stops at a pair that
// needs more, and returns how many codes are done and how many bits they took.
func (q *Quantizer) pairsGo(dst, codes, extra []byte) (done, pos int) {
	for ; done+2 <= len(codes) && pos>>3+8 <= len(extra); done += 2 {
		k, l := codes[done], codes[done+1]
		n, m := q.bits[k], q.bits[l]
		if n+m > maxPairBits {
			break
		}
		w := binary.LittleEndian.Uint64(extra[pos>>3:]) >> (pos & 7)
		a := q.base[k] + uint32(w&(1<<(n&63)-1))
		b := q.base[l] + uint32(w>>(n&63)&(1<<(m&63)-1))
		binary.LittleEndian.PutUint64(dst[4*done:4*done+8], uint64(a)|uint64(b)<<32)
		pos += int(n + m)
	}
	return done, pos
}
