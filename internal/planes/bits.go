package planes

import "encoding/binary"

// JoinBits undoes the bit shuffling of Blosc and of the bitshuffle library for one block: src has a row of bits for
// each bit of a value, the first byte's first. dst, src and scratch have one length, a multiple of 8 times
// size, and do not overlap.
func JoinBits(dst, src, scratch []byte, size int) {
	count := len(src) / size
	if size == 1 {
		JoinBitPlane(dst, src)
		return
	}
	for plane := range size {
		JoinBitPlane(scratch[plane*count:(plane+1)*count], src[plane*count:(plane+1)*count])
	}
	Join(dst, scratch, size)
}

// JoinBitPlane makes the bytes of dst from the 8 rows of src: row j has bit j of every byte, 8 a byte, the lowest
// bit first. dst and src have one length, a multiple of 8.
func JoinBitPlane(dst, src []byte) {
	count := len(src) / 8
	row0, row1, row2, row3 := src[:count], src[count:2*count], src[2*count:3*count], src[3*count:4*count]
	row4, row5, row6, row7 := src[4*count:5*count], src[5*count:6*count], src[6*count:7*count], src[7*count:8*count]
	i := 0
	for ; i+8 <= count; i += 8 {
		// An 8 by 8 matrix of bytes, a row a number, is transposed: halves, then quarters, then bytes
		// change places. Then each number has the bits of 8 values.
		m0, m4 := swap(u64(row0, i), u64(row4, i), 32, 0x00000000ffffffff)
		m1, m5 := swap(u64(row1, i), u64(row5, i), 32, 0x00000000ffffffff)
		m2, m6 := swap(u64(row2, i), u64(row6, i), 32, 0x00000000ffffffff)
		m3, m7 := swap(u64(row3, i), u64(row7, i), 32, 0x00000000ffffffff)
		m0, m2 = swap(m0, m2, 16, 0x0000ffff0000ffff)
		m1, m3 = swap(m1, m3, 16, 0x0000ffff0000ffff)
		m4, m6 = swap(m4, m6, 16, 0x0000ffff0000ffff)
		m5, m7 = swap(m5, m7, 16, 0x0000ffff0000ffff)
		m0, m1 = swap(m0, m1, 8, 0x00ff00ff00ff00ff)
		m2, m3 = swap(m2, m3, 8, 0x00ff00ff00ff00ff)
		m4, m5 = swap(m4, m5, 8, 0x00ff00ff00ff00ff)
		m6, m7 = swap(m6, m7, 8, 0x00ff00ff00ff00ff)
		out := dst[8*i : 8*i+64]
		binary.LittleEndian.PutUint64(out[0:], Transpose8(m0))
		binary.LittleEndian.PutUint64(out[8:], Transpose8(m1))
		binary.LittleEndian.PutUint64(out[16:], Transpose8(m2))
		binary.LittleEndian.PutUint64(out[24:], Transpose8(m3))
		binary.LittleEndian.PutUint64(out[32:], Transpose8(m4))
		binary.LittleEndian.PutUint64(out[40:], Transpose8(m5))
		binary.LittleEndian.PutUint64(out[48:], Transpose8(m6))
		binary.LittleEndian.PutUint64(out[56:], Transpose8(m7))
	}
	for ; i < count; i++ {
		matrix := uint64(row0[i]) | uint64(row1[i])<<8 | uint64(row2[i])<<16 | uint64(row3[i])<<24 |
			uint64(row4[i])<<32 | uint64(row5[i])<<40 | uint64(row6[i])<<48 | uint64(row7[i])<<56
		binary.LittleEndian.PutUint64(dst[8*i:8*i+8], Transpose8(matrix))
	}
}

func u64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i : i+8]) }

// swap exchanges the bits of x that lie shift places above mask with the bits of y in mask.
func swap(x, y uint64, shift int, mask uint64) (uint64, uint64) {
	changed := (x>>shift ^ y) & mask
	return x ^ changed<<shift, y ^ changed
}

// Transpose8 transposes an 8 by 8 matrix of bits, a row a byte (Hacker's Delight, section 7-3).
func Transpose8(x uint64) uint64 {
	changed := (x ^ x>>7) & 0x00aa00aa00aa00aa
	x ^= changed ^ changed<<7
	changed = (x ^ x>>14) & 0x0000cccc0000cccc
	x ^= changed ^ changed<<14
	changed = (x ^ x>>28) & 0x00000000f0f0f0f0
	return x ^ changed ^ changed<<28
}
