package kernel

import "encoding/binary"

// Quantizer maps a code to a base and a number of extra bits. A code that does not exist has more bits than
// any two codes together, so the sum of a pair shows it.
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
	for code := range codes {
		if code < small {
			q.base[code] = uint32(code)
			continue
		}
		exponent := code - small + power
		q.base[code], q.bits[code] = 1<<exponent, uint8(exponent)
	}
	for code := codes; code < len(q.bits); code++ {
		q.bits[code] = maxPairBits + 1
	}
	return q
}

// Decode writes a 32-bit number for every code to dst, and takes the extra bits from extra, lowest first. It
// reports whether all codes exist and extra has enough bits.
func (q *Quantizer) Decode(dst, codes, extra []byte) bool {
	dst = dst[:4*len(codes)]
	i, pos := q.pairs(dst, codes, extra)
	for ; i < len(codes) && pos>>3+8 <= len(extra); i++ {
		code := codes[i]
		if int(code) >= q.codes {
			return false
		}
		word := binary.LittleEndian.Uint64(extra[pos>>3:]) >> (pos & 7)
		width := q.bits[code]
		binary.LittleEndian.PutUint32(dst[4*i:4*i+4], q.base[code]+uint32(word&(1<<(width&63)-1)))
		pos += int(width)
	}
	for ; i < len(codes); i++ {
		code := codes[i]
		if int(code) >= q.codes {
			return false
		}
		// The last bytes may be less than a word. pos is at most their end, since the test below would have ended the
		// loop.
		width := q.bits[code]
		word := Word(extra[pos>>3:]) >> (pos & 7) & (1<<(width&63) - 1)
		binary.LittleEndian.PutUint32(dst[4*i:4*i+4], q.base[code]+uint32(word))
		if pos += int(width); pos > 8*len(extra) {
			return false
		}
	}
	return true
}

// pairsGo decodes two codes at a time, because one word holds the bits of most pairs. It stops at a pair that
// needs more, and returns how many codes are done and how many bits they took.
func (q *Quantizer) pairsGo(dst, codes, extra []byte) (done, pos int) {
	for ; done+2 <= len(codes) && pos>>3+8 <= len(extra); done += 2 {
		code1, code2 := codes[done], codes[done+1]
		width1, width2 := q.bits[code1], q.bits[code2]
		if width1+width2 > maxPairBits {
			break
		}
		word := binary.LittleEndian.Uint64(extra[pos>>3:]) >> (pos & 7)
		number1 := q.base[code1] + uint32(word&(1<<(width1&63)-1))
		number2 := q.base[code2] + uint32(word>>(width1&63)&(1<<(width2&63)-1))
		binary.LittleEndian.PutUint64(dst[4*done:4*done+8], uint64(number1)|uint64(number2)<<32)
		pos += int(width1 + width2)
	}
	return done, pos
}
