package kernel

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/cursor"
)

// Bitunpack fills dst with numbers of width bytes, each from the next nbits bits of src, lowest bit first.
// 1 <= nbits <= 8*width; src has at least the bits that dst needs.
func Bitunpack(dst, src []byte, width, nbits int) {
	if nbits == 8*width {
		copy(dst, src)
		return
	}
	switch width {
	case 1:
		cursor.Unpack(dst, src, nbits)
	case 2:
		if nbits <= 14 {
			bitunpackTail(dst, src, 2, nbits, bitunpack4(dst, src, nbits))
			return
		}
		bitunpackWide[uint16](dst, src, 2, nbits)
	case 4:
		bitunpackWide[uint32](dst, src, 4, nbits)
	case 8:
		bitunpackWide[uint64](dst, src, 8, nbits)
	}
}

func bitunpackWide[T unsigned](dst, src []byte, width, nbits int) {
	if numbers, ok := cast.Of[T](dst); ok {
		cursor.Unpack(numbers, src, nbits)
		return
	}
	bitunpackTail(dst, src, width, nbits, 0)
}

// bitunpack4 fills the front of dst, numbers of two bytes with at most 14 bits, as far as whole words can be read, four
// numbers from each. It returns how many numbers that is.
func bitunpack4(dst, src []byte, nbits int) int {
	mask := uint64(1)<<nbits - 1
	mask1, mask2, mask3 := mask<<16, mask<<32, mask<<48
	shift1, shift2, shift3 := (16-nbits)&63, (32-2*nbits)&63, (48-3*nbits)&63
	done, pos := 0, 0
	for len(dst) >= 8 && pos>>3+8 <= len(src) {
		word := binary.LittleEndian.Uint64(src[pos>>3:]) >> (pos & 7)
		binary.LittleEndian.PutUint64(dst, word&mask|word<<shift1&mask1|word<<shift2&mask2|word<<shift3&mask3)
		dst = dst[8:]
		done += 4
		pos += 4 * nbits
	}
	return done
}

// bitunpackTail fills dst from element i on, one number at a time.
func bitunpackTail(dst, src []byte, width, nbits, i int) {
	for count := len(dst) / width; i < count; i++ {
		PutLE(dst, i, width, cursor.BitsAt(src, i*nbits, nbits))
	}
}

// Bitpack writes the numbers of width bytes in src to dst, nbits bits each, lowest bit first, and zeros to
// the end of the last byte. It reports whether no number has more bits. dst has exactly the bytes needed.
func Bitpack(dst, src []byte, width, nbits int) bool {
	if nbits == 8*width {
		copy(dst, src)
		return true
	}
	clear(dst)
	var union uint64
	pos := 0
	for i := range len(src) / width {
		number := LE(src, i, width)
		union |= number
		number &= 1<<nbits - 1
		for got := 0; got < nbits; {
			bit := pos + got
			dst[bit>>3] |= byte(number >> got << (bit & 7))
			got += 8 - bit&7
		}
		pos += nbits
	}
	return union>>nbits == 0
}
