package filter

import (
	"encoding/binary"
)

// widen writes values of size bytes to dst: the len(dst)/size narrow values of src, of width bits (8,
// 16 or 32, less than 8*size), each with its sign if they have one, plus off.
func widen(dst, src []byte, size, width int, signed bool, off uint64) {
	var flip uint64 // x^flip-flip extends the sign
	if signed {
		flip = 1 << (width - 1)
		off -= flip
	}
	switch width {
	case 8:
		widen8(dst, src[:len(dst)/size], size, byte(flip), off)
	case 16:
		widen16(dst, src, size, uint16(flip), off)
	default:
		f := uint32(flip)
		for len(dst) >= 8 && len(src) >= 4 {
			binary.LittleEndian.PutUint64(dst, uint64(binary.LittleEndian.Uint32(src)^f)+off)
			dst, src = dst[8:], src[4:]
		}
	}
}

func widen8(dst, src []byte, size int, f byte, off uint64) {
	switch size {
	case 2:
		o := uint16(off)
		for i, v := range src {
			binary.LittleEndian.PutUint16(dst[2*i:2*i+2], uint16(v^f)+o)
		}
	case 4:
		o := uint32(off)
		for i, v := range src {
			binary.LittleEndian.PutUint32(dst[4*i:4*i+4], uint32(v^f)+o)
		}
	default:
		for i, v := range src {
			binary.LittleEndian.PutUint64(dst[8*i:8*i+8], uint64(v^f)+off)
		}
	}
}

func widen16(dst, src []byte, size int, f uint16, off uint64) {
	if size == 4 {
		o := uint32(off)
		for len(dst) >= 4 && len(src) >= 2 {
			binary.LittleEndian.PutUint32(dst, uint32(binary.LittleEndian.Uint16(src)^f)+o)
			dst, src = dst[4:], src[2:]
		}
		return
	}
	for len(dst) >= 8 && len(src) >= 2 {
		binary.LittleEndian.PutUint64(dst, uint64(binary.LittleEndian.Uint16(src)^f)+off)
		dst, src = dst[8:], src[2:]
	}
}
