package webp

import "math/bits"

// reader reads bits, the lowest of each byte first. Past the end they are 0 and over is set.
type reader struct {
	src  []byte
	have uint64
	n    uint // bits of have
	over bool
}

// fill makes at least 32 bits available.
func (r *reader) fill() {
	for r.n <= 56 {
		if len(r.src) == 0 {
			return
		}
		r.have |= uint64(r.src[0]) << r.n
		r.src, r.n = r.src[1:], r.n+8
	}
}

// read returns the next n bits, at most 24.
func (r *reader) read(n uint) uint32 {
	if r.n < n {
		r.fill()
	}
	v := uint32(r.have & (1<<n - 1))
	r.skip(n)
	return v
}

func (r *reader) skip(n uint) {
	if r.n < n {
		r.have, r.n, r.over = 0, 0, true
		return
	}
	r.have >>= n
	r.n -= n
}

const (
	maxLength = 15 // bits of a code, at most
	// lookBits are looked up at once: a table of 256 bytes. A group of codes has 5 tables at most.
	lookBits = 7
)

// code is a canonical prefix code.
type code struct {
	look    []uint16              // of the next bits: symbol<<4 | length, or 0 if the code is longer
	bits    uint                  // look has 1<<bits entries
	count   [maxLength + 1]uint16 // codes of each length
	symbols []uint16              // in the order of their codes
}

// set makes the code of the lengths of its symbols, which must be complete or one symbol, of no bits.
func (c *code) set(lengths []uint8) bool {
	*c = code{}
	used, longest := 0, uint(0)
	for _, n := range lengths {
		if n > 0 {
			c.count[n]++
			longest = max(longest, uint(n))
			used++
		}
	}
	if used == 0 {
		return false
	}
	var start [maxLength + 2]int
	left := 1
	for n := 1; n <= maxLength; n++ {
		left = left<<1 - int(c.count[n])
		if left < 0 {
			return false
		}
		start[n+1] = start[n] + int(c.count[n])
	}
	c.symbols = make([]uint16, used)
	for s, n := range lengths {
		if n > 0 {
			c.symbols[start[n]] = uint16(s)
			start[n]++
		}
	}
	if used == 1 {
		c.look = []uint16{c.symbols[0] << 4}
		return true
	}
	if left != 0 {
		return false
	}
	c.bits = min(longest, lookBits)
	c.look = make([]uint16, 1<<c.bits)
	next, index := 0, 0
	for n := uint(1); n <= c.bits; n++ {
		for range c.count[n] {
			start := int(bits.Reverse16(uint16(next)) >> (16 - n))
			for k := start; k < len(c.look); k += 1 << n {
				c.look[k] = c.symbols[index]<<4 | uint16(n)
			}
			next, index = next+1, index+1
		}
		next <<= 1
	}
	return true
}

// read returns the next symbol.
func (c *code) read(r *reader) int {
	if r.n < maxLength {
		r.fill()
	}
	if e := c.look[r.have&(1<<c.bits-1)]; e != 0 || c.bits == 0 {
		r.skip(uint(e & 15))
		return int(e >> 4)
	}
	v, first, index := 0, 0, 0
	for n := 1; n <= maxLength; n++ {
		v |= int(r.have >> (n - 1) & 1)
		k := int(c.count[n])
		if v-first < k {
			r.skip(uint(n))
			return int(c.symbols[index+v-first])
		}
		index, first, v = index+k, (first+k)<<1, v<<1
	}
	r.over = true // not reached: the code is complete
	return 0
}
