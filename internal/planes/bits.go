package planes

import "encoding/binary"

// JoinBits undoes the bit shuffling of Blosc and of the bitshuffle library for one block: src has a row of bits for
// each bit of a value, the first byte's first. dst, src and scratch have one length, a multiple of 8 times
// size, and do not overlap.
func JoinBits(dst, src, scratch []byte, size int) {
	n := len(src) / size
	if size == 1 {
		JoinBitPlane(dst, src)
		return
	}
	for k := range size {
		JoinBitPlane(scratch[k*n:(k+1)*n], src[k*n:(k+1)*n])
	}
	Join(dst, scratch, size)
}

// JoinBitPlane makes the bytes of dst from the 8 rows of src: row j has bit j of every byte, 8 a byte, the lowest
// bit first. dst and src have one length, a multiple of 8.
func JoinBitPlane(dst, src []byte) {
	n := len(src) / 8
	a, data, c, d := src[:n], src[n:2*n], src[2*n:3*n], src[3*n:4*n]
	e, f, g, h := src[4*n:5*n], src[5*n:6*n], src[6*n:7*n], src[7*n:8*n]
	i := 0
	for ; i+8 <= n; i += 8 {
		// An 8 by 8 matrix of bytes, a row a number, is transposed: halves, then quarters, then bytes
		// change places. Then each number has the bits of 8 values.
		r0, r4 := swap(u64(a, i), u64(e, i), 32, 0x00000000ffffffff)
		r1, r5 := swap(u64(data, i), u64(f, i), 32, 0x00000000ffffffff)
		r2, r6 := swap(u64(c, i), u64(g, i), 32, 0x00000000ffffffff)
		r3, r7 := swap(u64(d, i), u64(h, i), 32, 0x00000000ffffffff)
		r0, r2 = swap(r0, r2, 16, 0x0000ffff0000ffff)
		r1, r3 = swap(r1, r3, 16, 0x0000ffff0000ffff)
		r4, r6 = swap(r4, r6, 16, 0x0000ffff0000ffff)
		r5, r7 = swap(r5, r7, 16, 0x0000ffff0000ffff)
		r0, r1 = swap(r0, r1, 8, 0x00ff00ff00ff00ff)
		r2, r3 = swap(r2, r3, 8, 0x00ff00ff00ff00ff)
		r4, r5 = swap(r4, r5, 8, 0x00ff00ff00ff00ff)
		r6, r7 = swap(r6, r7, 8, 0x00ff00ff00ff00ff)
		o := dst[8*i : 8*i+64]
		binary.LittleEndian.PutUint64(o[0:], Transpose8(r0))
		binary.LittleEndian.PutUint64(o[8:], Transpose8(r1))
		binary.LittleEndian.PutUint64(o[16:], Transpose8(r2))
		binary.LittleEndian.PutUint64(o[24:], Transpose8(r3))
		binary.LittleEndian.PutUint64(o[32:], Transpose8(r4))
		binary.LittleEndian.PutUint64(o[40:], Transpose8(r5))
		binary.LittleEndian.PutUint64(o[48:], Transpose8(r6))
		binary.LittleEndian.PutUint64(o[56:], Transpose8(r7))
	}
	for ; i < n; i++ {
		x := uint64(a[i]) | uint64(data[i])<<8 | uint64(c[i])<<16 | uint64(d[i])<<24 |
			uint64(e[i])<<32 | uint64(f[i])<<40 | uint64(g[i])<<48 | uint64(h[i])<<56
		binary.LittleEndian.PutUint64(dst[8*i:8*i+8], Transpose8(x))
	}
}

func u64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i : i+8]) }

// swap exchanges the bits of x that lie shift places above mask with the bits of y in mask.
func swap(x, y uint64, shift int, mask uint64) (uint64, uint64) {
	t := (x>>shift ^ y) & mask
	return x ^ t<<shift, y ^ t
}

// Transpose8 transposes an 8 by 8 matrix of bits, a row a byte (Hacker's Delight, section 7-3).
func Transpose8(x uint64) uint64 {
	t := (x ^ x>>7) & 0x00aa00aa00aa00aa
	x ^= t ^ t<<7
	t = (x ^ x>>14) & 0x0000cccc0000cccc
	x ^= t ^ t<<14
	t = (x ^ x>>28) & 0x00000000f0f0f0f0
	return x ^ t ^ t<<28
}
