package filter

import (
	"encoding/binary"
	"math/bits"

	"github.com/chaski-eo/chaski/internal/cast"
)

// Double delta: u8 width of the magnitudes of the differences in bits, u64 count, the first two
// values, and the second difference of each further value: a sign bit and the magnitude, most
// significant bit first, in little-endian words of 64 bits. If width is at least 8*size-1, the
// values follow unchanged, since the differences would not be shorter.
const ddHeader = 9

// ddWords returns the number of words that follow the first two of n values.
func ddWords(n, width int) int {
	if n <= 2 {
		return 0
	}
	return ((n-2)*(width+1) + 63) / 64
}

// ddDecode fills dst, n values of size bytes, from the two first values and the words behind them.
// words has 8*ddWords(n, width) bytes; width is at most 62.
func ddDecode(dst []byte, size, width int, first, second int64, words []byte) {
	n := len(dst) / size
	if n > 0 {
		cast.PutUint(dst, size, uint64(first))
	}
	if n > 1 {
		cast.PutUint(dst[size:], size, uint64(second))
	}
	prev, delta := second, second-first
	var word uint64 // bits not used yet, at the top
	left := 0
	need := width + 1
	for i := 2; i < n; i++ {
		var v uint64
		if left >= need {
			v = word >> (64 - need)
			word <<= need
			left -= need
		} else {
			next := binary.LittleEndian.Uint64(words)
			words = words[8:]
			rest := need - left
			v = word>>(64-need) | next>>(64-rest)
			word = next << rest
			left = 64 - rest
		}
		mag := int64(v &^ (1 << width))
		if v>>width != 0 {
			mag = -mag
		}
		delta += mag
		prev += delta
		cast.PutUint(dst[i*size:], size, uint64(prev))
	}
}

// extend returns the value of size bytes at b, with its sign if it has one.
func extend(b []byte, size int, signed bool) int64 {
	v := cast.Uint(b, size)
	if signed {
		s := 64 - 8*size
		return int64(v<<s) >> s
	}
	return int64(v)
}

// ddWidth returns the number of bits of the largest second difference of src, or 64 if one
// overflows.
func ddWidth(src []byte, size int, signed bool) int {
	n := len(src) / size
	if n <= 2 {
		return 0
	}
	a, b := extend(src, size, signed), extend(src[size:], size, signed)
	prev := b - a
	var greatest uint64
	for i := 2; i < n; i++ {
		c := extend(src[i*size:], size, signed)
		d := c - b
		dd := d - prev
		if size == 8 && (overflows(c, b, d) || overflows(d, prev, dd)) {
			return 64
		}
		if dd < 0 {
			greatest = max(greatest, uint64(-dd))
		} else {
			greatest = max(greatest, uint64(dd))
		}
		b, prev = c, d
	}
	return max(bits.Len64(greatest), 1)
}

// overflows reports whether d = a-b does not hold the difference.
func overflows(a, b, d int64) bool { return (a^b)&(a^d) < 0 }

// ddEncode appends the words of src. width is the result of ddWidth, at most 62.
func ddEncode(out, src []byte, size, width int, signed bool) []byte {
	n := len(src) / size
	if n <= 2 {
		return out
	}
	b := extend(src[size:], size, signed)
	prev := b - extend(src, size, signed)
	var word uint64
	used, need := 0, width+1
	for i := 2; i < n; i++ {
		c := extend(src[i*size:], size, signed)
		d := c - b
		dd := d - prev
		b, prev = c, d
		v := uint64(dd)
		if dd < 0 {
			v = uint64(-dd) | 1<<width
		}
		if used+need < 64 {
			word |= v << (64 - used - need)
			used += need
			continue
		}
		rest := used + need - 64
		out = binary.LittleEndian.AppendUint64(out, word|v>>rest)
		word, used = 0, rest
		if rest > 0 {
			word = v << (64 - rest)
		}
	}
	if used > 0 {
		out = binary.LittleEndian.AppendUint64(out, word)
	}
	return out
}
