package kernel

import (
	"encoding/binary"
)

// Unpack fills dst with numbers of width bits, 1 to 8, that follow each other in packed, the most significant bit
// first. packed may be the end of the buffer that dst is the front of: it has no more bytes than dst.
func Unpack(dst, packed []byte, width int) {
	// Eight numbers at a time: their bytes are spread over a word, and then the numbers of each byte.
	switch width {
	case 1:
		// The product has the byte eight times, 9 bits apart: the highest bit of byte k of it is bit k of the eight.
		const apart, highest = 0x8040201008040201, 0x8080808080808080
		for ; len(dst) >= 8; dst, packed = dst[8:], packed[1:] {
			binary.LittleEndian.PutUint64(dst, uint64(packed[0])*apart&highest>>7)
		}
	case 2:
		const lowest = 3<<32 | 3
		for ; len(dst) >= 8; dst, packed = dst[8:], packed[2:] {
			x := uint64(packed[0]) | uint64(packed[1])<<32
			binary.LittleEndian.PutUint64(dst, x>>6&lowest|x>>4&lowest<<8|x>>2&lowest<<16|x&lowest<<24)
		}
	case 4:
		const lowest = 0x000f000f000f000f
		for ; len(dst) >= 8; dst, packed = dst[8:], packed[4:] {
			x := uint64(binary.LittleEndian.Uint32(packed))
			x = (x | x<<16) & 0x0000ffff0000ffff
			x = (x | x<<8) & 0x00ff00ff00ff00ff
			binary.LittleEndian.PutUint64(dst, x>>4&lowest|x&lowest<<8)
		}
	}
	var acc uint
	have, pos := 0, 0
	for i := range dst {
		if have < width {
			acc = acc<<8 | uint(packed[pos])
			pos++
			have += 8
		}
		have -= width
		dst[i] = byte(acc >> have & (1<<width - 1))
	}
}
