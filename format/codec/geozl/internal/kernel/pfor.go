package kernel

import (
	"encoding/binary"
	"math/bits"

	"github.com/chaski-eo/chaski/internal/cursor"
)

// PforBlock is the number of numbers of a block of Pfor.
const PforBlock = 256

// Pfor fills dst, numbers of width bytes, from blocks of PforBlock numbers. Numbers past dst in
// the last block are left out. It reports whether src is exactly such blocks.
func Pfor(dst, src []byte, width int) bool {
	rest, ok := PforSome(dst, src, width)
	return ok && len(rest) == 0
}

// PforSome is Pfor for the first blocks of src. It returns what follows them.
func PforSome(dst, src []byte, width int) (rest []byte, ok bool) {
	size := width * PforBlock
	for len(dst) >= size {
		n := pforOne(dst[:size], src, width)
		if n == 0 {
			return nil, false
		}
		dst, src = dst[size:], src[n:]
	}
	if len(dst) == 0 {
		return src, true
	}
	var last [8 * PforBlock]byte
	n := pforOne(last[:size], src, width)
	copy(dst, last[:size])
	return src[n:], n > 0
}

// pforOne fills dst from one block and returns the size of the block in bytes, or 0 if src is not a block.
//
// A block is the bits of a number in the body and the number of exceptions. If there are exceptions, these
// follow: the number of their bits above the body's (the top bit gives the form of the positions),
// the positions (a bitmap, or a list in rising order), and the bits of the exceptions. Then comes the body.
func pforOne(dst, src []byte, width int) int {
	if len(src) < 2 {
		return 0
	}
	nbits, count, pos := int(src[0]), int(src[1]), 2
	if nbits > 8*width {
		return 0
	}
	var positions, high []byte
	extra, list := 0, false
	if count > 0 {
		if len(src) < 3 {
			return 0
		}
		extra, list = int(src[2]&127), src[2]>>7 != 0
		size := PforBlock / 8
		if list {
			size = count
		}
		pos = 3 + size + (count*extra+7)/8
		if extra == 0 || nbits+extra > 8*width || pos > len(src) {
			return 0
		}
		positions, high = src[3:3+size], src[3+size:]
	}
	end := pos + nbits*PforBlock/8
	if end > len(src) {
		return 0
	}
	pforBody(dst, src[pos:end], width, nbits)
	if count == 0 {
		return end
	}
	if !list {
		var all [PforBlock]byte
		if positions = listOf(positions, &all); len(positions) != count {
			return 0
		}
	}
	if !patch(dst, positions, high, width, nbits, extra) {
		return 0
	}
	return end
}

// listOf returns the positions of the ones of a bitmap, which it writes to all.
func listOf(bitmap []byte, all *[PforBlock]byte) []byte {
	found := 0
	for i := 0; i < len(bitmap); i += 8 {
		for word := binary.LittleEndian.Uint64(bitmap[i:]); word != 0; word &= word - 1 {
			all[found&(PforBlock-1)] = byte(8*i + bits.TrailingZeros64(word))
			found++
		}
	}
	return all[:found]
}

// patch adds the upper bits of exceptions, extra each, above the lower nbits of the numbers at their positions. It
// reports whether each position is above the one before it. What follows the bits in high is read, but has no effect.
func patch(dst, positions, high []byte, width, nbits, extra int) (rising bool) {
	dst = dst[:width*PforBlock]
	mask, shift := ^uint64(0)>>(64-extra&63), nbits&63
	previous, pos := -1, 0
	for _, position := range positions {
		if int(position) <= previous {
			return false
		}
		previous = int(position)
		var upper uint64
		// A word from any bit of its first byte on has 57 bits. The body follows in high, so words rarely end too late.
		if first := pos >> 3; extra <= 57 && first+8 <= len(high) {
			upper = binary.LittleEndian.Uint64(high[first:]) >> (pos & 7) & mask << shift
		} else {
			upper = cursor.BitsAt(high, pos, extra) << shift
		}
		pos += extra
		switch width {
		case 1:
			dst[previous] |= byte(upper)
		case 2:
			number := dst[2*previous:][:2]
			binary.LittleEndian.PutUint16(number, binary.LittleEndian.Uint16(number)|uint16(upper))
		case 4:
			number := dst[4*previous:][:4]
			binary.LittleEndian.PutUint32(number, binary.LittleEndian.Uint32(number)|uint32(upper))
		default:
			number := dst[8*previous:][:8]
			binary.LittleEndian.PutUint64(number, binary.LittleEndian.Uint64(number)|upper)
		}
	}
	return true
}

// pforBodyGo fills dst, a block of numbers of width bytes, from src, nbits bits each. The numbers of a block
// are distributed over as many lanes as fit in 16 bytes. Each lane is a row of bits, lowest first, cut into
// words of width bytes; the words of all lanes lie side by side.
func pforBodyGo(dst, src []byte, width, nbits int) {
	wordBits := 8 * width
	if nbits == wordBits {
		copy(dst, src)
		return
	}
	if nbits == 0 {
		clear(dst)
		return
	}
	// Two words of 64 bits hold all lanes. ones has a one in the lowest bit of every lane.
	ones := ^uint64(0)
	if width < 8 {
		ones /= 1<<wordBits - 1
	} else {
		ones = 1
	}
	lowest := func(n int) uint64 { // the lowest n bits of every lane, n < wordBits
		return ones * (1<<n - 1)
	}
	mask := lowest(nbits)
	var a, b uint64 // bits that are read but not used: held bits in every lane
	held := 0
	for i := 0; i+16 <= len(dst); i += 16 {
		var x, y uint64
		if held < nbits {
			low, high := binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[8:])
			src = src[16:]
			above := ^lowest(held)
			x, y = (a|low<<held&above)&mask, (b|high<<held&above)&mask
			used := nbits - held
			below := lowest(wordBits - used)
			a, b = low>>used&below, high>>used&below
			held = wordBits - used
		} else {
			x, y = a&mask, b&mask
			a, b = a&^mask>>nbits, b&^mask>>nbits
			held -= nbits
		}
		binary.LittleEndian.PutUint64(dst[i:], x)
		binary.LittleEndian.PutUint64(dst[i+8:], y)
	}
}
