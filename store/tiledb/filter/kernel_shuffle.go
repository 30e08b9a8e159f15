package filter

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/planes"
)

// unshuffle writes byte k of value i, dst[i*size+k], from src[k*n+i], n = len(src)/size; bytes behind
// the last whole value are copied. dst and src have one length and do not overlap.
func unshuffle(dst, src []byte, size int) {
	n := values(len(src), size)
	copy(dst[n:], src[n:])
	planes.Join(dst[:n], src[:n], size)
}

// shuffle is the inverse of unshuffle.
func shuffle(dst, src []byte, size int) {
	n := values(len(src), size)
	copy(dst[n:], src[n:])
	planes.Split(dst[:n], src[:n], size)
}

// bitBlock is the number of values that are bit-shuffled together: 8 KiB of them, a multiple of 8 and
// at least 128 (the bitshuffle library's own choice).
func bitBlock(size int) int { return max(8<<10/size/8*8, 128) }

// eachBitBlock calls f for each block of a bit-shuffled part of n values; values behind the last
// multiple of 8 are in none. f gets the first value and the number of values.
func eachBitBlock(n, size int, f func(first, count int)) (done int) {
	n = n / 8 * 8
	for done < n {
		c := min(bitBlock(size), n-done)
		f(done, c)
		done += c
	}
	return done
}

// unbitshuffle undoes bitshuffle. dst and src have one length, a multiple of size, and do not overlap.
func unbitshuffle(dst, src []byte, size int) {
	var scratch [8 << 10]byte // a block: no size makes it larger
	done := eachBitBlock(len(src)/size, size, func(first, count int) {
		in, out := src[first*size:(first+count)*size], dst[first*size:(first+count)*size]
		if size == 1 {
			unbitPlane(out, in)
			return
		}
		bytes := scratch[:len(in)]
		for k := range size {
			unbitPlane(bytes[k*count:(k+1)*count], in[k*count:(k+1)*count])
		}
		planes.Join(out, bytes, size)
	})
	copy(dst[done*size:], src[done*size:])
}

// unbitPlane makes the bytes of dst from the 8 rows of src: row j has bit j of every byte, 8 a byte, the lowest
// bit first. dst and src have one length, a multiple of 8.
func unbitPlane(dst, src []byte) {
	n := len(src) / 8
	a, b, c, d := src[:n], src[n:2*n], src[2*n:3*n], src[3*n:4*n]
	e, f, g, h := src[4*n:5*n], src[5*n:6*n], src[6*n:7*n], src[7*n:8*n]
	i := 0
	for ; i+8 <= n; i += 8 {
		// An 8 by 8 matrix of bytes, a row a number, is transposed: halves, then quarters, then bytes
		// change places. Then each number has the bits of 8 values.
		r0, r4 := swap(u64(a, i), u64(e, i), 32, 0x00000000ffffffff)
		r1, r5 := swap(u64(b, i), u64(f, i), 32, 0x00000000ffffffff)
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
		binary.LittleEndian.PutUint64(o[0:], transpose8(r0))
		binary.LittleEndian.PutUint64(o[8:], transpose8(r1))
		binary.LittleEndian.PutUint64(o[16:], transpose8(r2))
		binary.LittleEndian.PutUint64(o[24:], transpose8(r3))
		binary.LittleEndian.PutUint64(o[32:], transpose8(r4))
		binary.LittleEndian.PutUint64(o[40:], transpose8(r5))
		binary.LittleEndian.PutUint64(o[48:], transpose8(r6))
		binary.LittleEndian.PutUint64(o[56:], transpose8(r7))
	}
	for ; i < n; i++ {
		x := uint64(a[i]) | uint64(b[i])<<8 | uint64(c[i])<<16 | uint64(d[i])<<24 |
			uint64(e[i])<<32 | uint64(f[i])<<40 | uint64(g[i])<<48 | uint64(h[i])<<56
		binary.LittleEndian.PutUint64(dst[8*i:8*i+8], transpose8(x))
	}
}

func u64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i : i+8]) }

// swap exchanges the bits of x above those of mask, shift places higher, with those of y in mask.
func swap(x, y uint64, shift int, mask uint64) (uint64, uint64) {
	t := (x>>shift ^ y) & mask
	return x ^ t<<shift, y ^ t
}

// bitshuffle gathers equal bits of 8 values into bytes and these into rows, in blocks of bitBlock
// values. dst and src have one length, a multiple of size; values behind the last multiple of 8 are
// copied.
func bitshuffle(dst, src []byte, size int) {
	done := eachBitBlock(len(src)/size, size, func(first, count int) {
		bitBlockForward(dst[first*size:(first+count)*size], src[first*size:(first+count)*size], size, count/8)
	})
	copy(dst[done*size:], src[done*size:])
}

func bitBlockForward(dst, src []byte, size, rowBytes int) {
	for k := range size {
		rows := dst[k*8*rowBytes : (k+1)*8*rowBytes]
		for g := range rowBytes {
			var x uint64
			s := src[g*8*size+k:]
			for i := range 8 {
				x |= uint64(s[i*size]) << (8 * i)
			}
			x = transpose8(x)
			for j := range 8 {
				rows[g+j*rowBytes] = byte(x >> (8 * j))
			}
		}
	}
}

// transpose8 transposes an 8 by 8 matrix of bits, a row a byte (Hacker's Delight, section 7-3).
func transpose8(x uint64) uint64 {
	t := (x ^ x>>7) & 0x00aa00aa00aa00aa
	x ^= t ^ t<<7
	t = (x ^ x>>14) & 0x0000cccc0000cccc
	x ^= t ^ t<<14
	t = (x ^ x>>28) & 0x00000000f0f0f0f0
	return x ^ t ^ t<<28
}
