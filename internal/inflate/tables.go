package inflate

import (
	"errors"
	"math/bits"
)

// An entry of a table is one of these, with the number of bits that it takes in its lowest byte:
//
//	literals     isLiteral | bits of the first << 26 | how many, 1 or 2 << 24 | second << 16 | first << 8
//	match        isThen | literals, one of them, whose second byte is the length of a match that follows it
//	base         base << 16 | bits of the code << 8: a length or distance. Bits that it takes beyond its code are
//	             added to the base.
//	odd ones     isOdd | what
const (
	isLiteral = 1 << 31
	isThen    = 1 << 30
	isOdd     = 1 << 15 // never set in a base, whose code has at most 15 bits
	isSub     = 1 << 14 // odd: index << 16 | bits << 8 of a table for codes that begin with these bits
	isEnd     = 1 << 13 // odd: the end of the block
	// odd, and neither: no code begins with these bits
)

const (
	maxLiterals  = 288
	maxDistances = 32
	maxCode      = 15 // bits
	litBits      = 11 // of a look-up: two literals of 16-bit imagery fit, such as 2 and 9 bits; 8 KiB stay in the cache
	distBits     = 8
	sizeBits     = 7 // codes of sizes have no more
	// Each sub-table serves a prefix of codes longer than the look-up. There are fewer than half as many prefixes as
	// symbols. A sub-table has at most 2^(15-11) or 2^(15-8) entries, and at least two of them are codes.
	litSubs  = maxLiterals / 2 * (1 << (maxCode - litBits))
	distSubs = maxDistances / 2 * (1 << (maxCode - distBits))
)

type (
	litTable  [1<<litBits + litSubs]uint32
	distTable [1<<distBits + distSubs]uint32
)

var errCodes = errors.New("the codes of a block are not a prefix code")

// literalEntries and distEntries are the entries of symbols, without the lengths of their codes.
var literalEntries, distEntries = symbols()

func symbols() (lit [maxLiterals]uint32, dist [maxDistances]uint32) {
	for i := range 256 {
		lit[i] = isLiteral | 1<<24 | uint32(i)<<8
	}
	lit[256] = isOdd | isEnd
	base := uint32(3)
	for i := range 28 { // RFC 1951 section 3.2.5: four codes for each number of further bits, from the ninth on
		extra := max(0, i/4-1)
		lit[257+i] = base<<16 | uint32(extra)
		base += 1 << extra
	}
	lit[285] = 258 << 16 // not as the rule has it
	lit[286], lit[287] = isOdd, isOdd
	base = 1
	for i := range 30 {
		extra := max(0, i/2-1)
		dist[i] = base<<16 | uint32(extra)
		base += 1 << extra
	}
	dist[30], dist[31] = isOdd, isOdd
	return lit, dist
}

// build fills a table for the codes whose lengths are sizes. look is the bits of a look-up, and entries has the entries
// of the symbols.
func build(table []uint32, look uint, sizes []uint8, entries []uint32) error {
	var count, next [maxCode + 1]int
	for _, size := range sizes {
		count[size]++
	}
	longest, code, first := uint(0), 0, 0
	for size := 1; size <= maxCode; size++ {
		code = code<<1 + count[size]
		next[size], first = first, first+count[size]
		if count[size] > 0 {
			longest = uint(size)
		}
		if code > 1<<size {
			return errCodes
		}
	}
	if code != 1<<maxCode {
		// A block may lack codes of distances, if all of it is literals, or have one of a single bit, whose other value
		// is unused.
		if longest > 1 {
			return errCodes
		}
		for i := range table[:1<<look] {
			table[i] = isOdd | 1
		}
	}
	// Symbols in the order of their codes: by length, then by number.
	var order [maxLiterals]uint16
	for symbol, size := range sizes {
		if size > 0 {
			order[next[size]] = uint16(symbol)
			next[size]++
		}
	}
	fillTable(table, look, longest, sizes, order[:first], entries)
	return nil
}

// fillTable fills a table. order has the symbols in the order of their codes.
func fillTable(table []uint32, look, longest uint, sizes []uint8, order []uint16, entries []uint32) {
	code, size := 0, uint(0)
	prefix, sub := -1, 0
	free := 1 << look // where the next sub-table begins
	// The first 1<<size entries hold all codes of up to size bits; a copy behind them adds a bit that these ignore.
	grow := func(length uint) {
		for ; size < length; size++ {
			if code <<= 1; size < look {
				copy(table[1<<size:2<<size], table[:1<<size])
			}
		}
	}
	for _, symbol := range order {
		length := uint(sizes[symbol])
		grow(length)
		reversed := int(bits.Reverse16(uint16(code)) >> (16 - length))
		code++
		entry := withCode(entries[symbol], length)
		if length <= look {
			table[reversed] = entry
			continue
		}
		// Codes with a prefix are neighbours, and two at least, because none is missing.
		if head := reversed & (1<<look - 1); head != prefix {
			prefix, sub = head, free
			free += 1 << (longest - look)
			table[head] = isOdd | isSub | uint32(sub)<<16 | uint32(longest-look)<<8 | uint32(look)
		}
		for i := reversed >> look; i < 1<<(longest-look); i += 1 << (length - look) {
			table[sub+i] = entry
		}
	}
	grow(look)
}

// withCode adds a code of s bits to the entry of a symbol.
func withCode(e uint32, s uint) uint32 {
	switch {
	case e&isLiteral != 0:
		return e | uint32(s)<<26 | uint32(s)
	case e&isOdd != 0:
		return e | uint32(s)
	}
	return e + uint32(s)<<8 + uint32(s)
}

// pair joins a literal with the literal or the length of a match behind it, where both codes fit into one look-up.
func (t *litTable) pair() {
	// From above, because an entry looks at the one of its further bits, which lies below it and must be single yet.
	for i := 1<<litBits - 1; i >= 0; i-- {
		entry := t[i]
		if entry&isLiteral == 0 {
			continue
		}
		taken := entry & 0xff
		next := t[i>>taken]
		both := taken + next&0xff
		switch {
		case both > litBits:
		case next&isLiteral != 0 && next>>24&3 == 1:
			t[i] = entry&^(3<<24|0xff) | 2<<24 | next&0xff00<<8 | both
		case next&(isLiteral|isOdd) == 0 && next&0xff == next>>8&15 && next>>16 < 256: // no bits beyond its code
			t[i] = entry&^0xff | isThen | next>>16<<16 | both
		}
	}
}
