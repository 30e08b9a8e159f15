package packed

import (
	"encoding/binary"
	"math/bits"
)

// bitReader reads numbers of bits, the highest first. Behind the end it reads zeros: n is less than past then.
type bitReader struct {
	src  []byte
	bits uint64 // at the high end
	n    int    // of bits
	past int    // of zeros that were put behind the end
}

// fill makes n at least 56.
func (r *bitReader) fill() {
	if len(r.src) >= 8 {
		r.bits |= binary.BigEndian.Uint64(r.src) >> r.n
		more := (63 - r.n) / 8
		r.src, r.n = r.src[more:], r.n+8*more
		return
	}
	for ; r.n < 56; r.n += 8 {
		if len(r.src) == 0 {
			r.past += 8
			continue
		}
		r.bits |= uint64(r.src[0]) << (56 - r.n)
		r.src = r.src[1:]
	}
}

// next returns a number of up to 56 bits.
func (r *bitReader) next(width int) uint64 {
	if r.n < width {
		r.fill()
	}
	number := r.bits >> (64 - width)
	r.bits, r.n = r.bits<<width, r.n-width
	return number
}

// wide returns a number of up to 64 bits.
func (r *bitReader) wide(width int) uint64 {
	if high := width - 32; high > 0 {
		return r.next(high)<<32 | r.next(32)
	}
	return r.next(width)
}

// unary returns how many zeros a 1 follows, and reads that, too.
func (r *bitReader) unary() (count int) {
	for r.past == 0 || r.n > 0 {
		if zeros := bits.LeadingZeros64(r.bits); zeros < r.n {
			r.bits, r.n = r.bits<<(zeros+1), r.n-zeros-1
			return count + zeros
		}
		count += r.n
		r.bits, r.n = 0, 0
		if r.past == 0 {
			r.fill()
		}
	}
	r.n-- // there is no 1
	return count
}
