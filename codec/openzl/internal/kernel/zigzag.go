package kernel

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/scan"
)

// Zigzag undoes the zigzag mapping (0, -1, 1, -2, ... stored as 0, 1, 2, 3, ...) of the numbers of
// width bytes in src. dst and src have one length; they may be the same memory.
func Zigzag(dst, src []byte, width int) {
	done := false
	switch width {
	case 1:
		done = zigzag[uint8](dst, src)
	case 2:
		done = zigzag[uint16](dst, src)
	case 4:
		done = zigzag[uint32](dst, src)
	}
	if !done {
		zigzagBytes(dst, src, width)
	}
}

func zigzag[T unsigned](dst, src []byte) bool {
	d, ok := cast.Of[T](dst)
	s, ok2 := cast.Of[T](src)
	if ok && ok2 {
		scan.Zigzag(d, s)
	}
	return ok && ok2
}

func zigzagBytes(dst, src []byte, width int) {
	// Eight bytes at a time, for all widths: low has a one in the lowest bit of every lane, half
	// zeroes the bit that the shift pulls in from the lane above, and ones spreads the lowest bit
	// over its lane.
	var low, ones uint64
	switch width {
	case 1:
		low, ones = 0x0101010101010101, 0xff
	case 2:
		low, ones = 0x0001000100010001, 0xffff
	case 4:
		low, ones = 0x0000000100000001, 0xffffffff
	default:
		low, ones = 1, 1<<64-1
	}
	half := ^(low << (8*uint(width) - 1))
	dst = dst[:len(src)]
	for len(src) >= 8 && len(dst) >= 8 {
		z := binary.LittleEndian.Uint64(src)
		binary.LittleEndian.PutUint64(dst, z>>1&half^(z&low)*ones)
		src, dst = src[8:], dst[8:]
	}
	for i := range len(src) / width {
		z := LE(src, i, width)
		PutLE(dst, i, width, z>>1^-(z&1))
	}
}
