package filter

import "github.com/chaski-eo/chaski/internal/planes"

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
		planes.JoinBits(out, in, scratch[:len(in)], size)
	})
	copy(dst[done*size:], src[done*size:])
}
