package webp

import "math/bits"

// reader reads bits, the lowest of each byte first. Past the end they are 0 and over is set.
type reader struct {
	src       []byte
	have      uint64
	n         uint // bits of have
	isPastEnd bool
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
	value := uint32(r.have & (1<<n - 1))
	r.skip(n)
	return value
}

func (r *reader) skip(n uint) {
	if r.n < n {
		r.have, r.n, r.isPastEnd = 0, 0, true
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
	for _, length := range lengths {
		if length > 0 {
			c.count[length]++
			longest = max(longest, uint(length))
			used++
		}
	}
	if used == 0 {
		return false
	}
	var start [maxLength + 2]int
	left := 1
	for length := 1; length <= maxLength; length++ {
		left = left<<1 - int(c.count[length])
		if left < 0 {
			return false
		}
		start[length+1] = start[length] + int(c.count[length])
	}
	c.symbols = make([]uint16, used)
	for symbol, length := range lengths {
		if length > 0 {
			c.symbols[start[length]] = uint16(symbol)
			start[length]++
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
	for length := uint(1); length <= c.bits; length++ {
		for range c.count[length] {
			start := int(bits.Reverse16(uint16(next)) >> (16 - length))
			for entry := start; entry < len(c.look); entry += 1 << length {
				c.look[entry] = c.symbols[index]<<4 | uint16(length)
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
	if entry := c.look[r.have&(1<<c.bits-1)]; entry != 0 || c.bits == 0 {
		r.skip(uint(entry & 15))
		return int(entry >> 4)
	}
	word, first, index := 0, 0, 0
	for length := 1; length <= maxLength; length++ {
		word |= int(r.have >> (length - 1) & 1)
		count := int(c.count[length])
		if word-first < count {
			r.skip(uint(length))
			return int(c.symbols[index+word-first])
		}
		index, first, word = index+count, (first+count)<<1, word<<1
	}
	r.isPastEnd = true // not reached: the code is complete
	return 0
}
