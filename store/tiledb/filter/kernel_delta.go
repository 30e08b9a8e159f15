package filter

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/cast"
)

// Double delta: u8 width of the magnitudes of the differences in bits, u64 count, the first two values, and the second
// difference of each further value: a sign bit and the magnitude, most significant bit first, in little-endian words of
// 64 bits. If width is at least 8*size-1, the values follow unchanged, since the differences would not be shorter.
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
	count := len(dst) / size
	if count > 0 {
		cast.PutUint(dst, size, uint64(first))
	}
	if count > 1 {
		cast.PutUint(dst[size:], size, uint64(second))
	}
	prev, delta := second, second-first
	var word uint64 // bits not used yet, at the top
	left := 0
	need := width + 1
	for i := 2; i < count; i++ {
		var coded uint64
		if left >= need {
			coded = word >> (64 - need)
			word <<= need
			left -= need
		} else {
			next := binary.LittleEndian.Uint64(words)
			words = words[8:]
			rest := need - left
			coded = word>>(64-need) | next>>(64-rest)
			word = next << rest
			left = 64 - rest
		}
		mag := int64(coded &^ (1 << width))
		if coded>>width != 0 {
			mag = -mag
		}
		delta += mag
		prev += delta
		cast.PutUint(dst[i*size:], size, uint64(prev))
	}
}

// extend returns the value of size bytes at b, with its sign if it has one.
func extend(b []byte, size int, signed bool) int64 {
	value := cast.Uint(b, size)
	if signed {
		s := 64 - 8*size
		return int64(value<<s) >> s
	}
	return int64(value)
}
