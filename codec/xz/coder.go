package xz

import (
	"encoding/binary"
	"math/bits"
)

const (
	certainBits = 11
	certain     = 1 << certainBits // the probability 1
	even        = certain / 2
	learning    = 5       // a probability moves by 1/32 of the way to the bit that came
	least       = 1 << 24 // a span is this at least when a bit is decoded
)

// coder is the range decoder. Behind the end of src it reads zeros.
type coder struct {
	src        []byte
	pos        int
	span, code uint32
}

// start begins to decode src. It reports false if src does not begin as streams do.
func (r *coder) start(src []byte) bool {
	const size = 5
	if len(src) < size || src[0] != 0 {
		return false
	}
	*r = coder{src, size, 1<<32 - 1, binary.BigEndian.Uint32(src[1:])}
	return true
}

// refill makes the span long enough.
func (r *coder) refill() {
	if r.span < least {
		r.span <<= 8
		r.code <<= 8
		if r.pos < len(r.src) {
			r.code |= uint32(r.src[r.pos])
		}
		r.pos++
	}
}

// bit decodes a bit that is 0 with the probability *p ^ even.
func (r *coder) bit(p *uint16) bool {
	r.refill()
	chance := *p ^ even
	bound := r.span / certain * uint32(chance)
	if r.code < bound {
		r.span = bound
		*p = (chance + (certain-chance)>>learning) ^ even
		return false
	}
	r.span -= bound
	r.code -= bound
	*p = (chance - chance>>learning) ^ even
	return true
}

// direct decodes n bits that are 0 or 1 with the same probability.
func (r *coder) direct(n int) (v uint32) {
	for range n {
		r.refill()
		r.span >>= 1
		r.code -= r.span
		zero := uint32(int32(r.code) >> 31) // all bits set if the bit is 0, for the span has 31 bits
		r.code += r.span & zero
		v = v<<1 + 1 + zero
	}
	return v
}

// tree decodes a number of as many bits as probs has probabilities for, the highest first.
func (r *coder) tree(probs []uint16) int {
	return int(r.number(probs, uint32(len(probs)), 0, 0)) - len(probs)
}

// reverse decodes a number of n bits, the lowest first.
func (r *coder) reverse(probs []uint16, n int) uint32 {
	return bits.Reverse32(r.number(probs, 1<<n, 0, 0)) >> (32 - n)
}

// literalSize is how many probabilities there are for a byte: one for each begin of it, and two for each begin that is
// compared.
const literalSize = 3 << 8

// numberPlain decodes bits, the highest first, until the number that they are behind a 1 is limit or more. compared is
// 1<<8 for a byte that is compared with other, the one that the last match would go on with: bits have other
// probabilities until one differs. Otherwise it is 0.
//
// Bits of imagery cannot be foretold, so that no branch depends on them.
func (r *coder) numberPlain(probs []uint16, limit, other, compared uint32) uint32 {
	src, pos, span, code := r.src, r.pos, r.span, r.code
	number := uint32(1)
	for number < limit {
		if span < least {
			span <<= 8
			code <<= 8
			if pos < len(src) {
				code |= uint32(src[pos])
			}
			pos++
		}
		other <<= 1
		its := other & compared
		p := &probs[compared+its+number]
		chance := uint32(*p ^ even)
		bound := span / certain * chance
		zero := uint32((int64(code) - int64(bound)) >> 63) // all bits set if the bit is 0
		span = bound&zero | (span-bound)&^zero
		code -= bound &^ zero
		*p = uint16(chance-uint32(int32(chance+zero&^(certain-1<<learning))>>learning)) ^ even
		number = number<<1 + 1 + zero
		compared &= its ^ zero
	}
	r.pos, r.span, r.code = pos, span, code
	return number
}
