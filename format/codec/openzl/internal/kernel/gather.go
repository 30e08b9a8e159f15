package kernel

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/cast"
)

// Gather writes the element of alphabet for every index of indexWidth bytes to dst. It reports whether all
// elements exist. Elements have width bytes; dst has as many elements as there are indices. If widths are equal, dst
// and indices may be the same memory.
func Gather(dst, alphabet, indices []byte, width, indexWidth int) bool {
	if cast.IsWidth(width) {
		return cast.ByWidth(width, gatherNumbers[uint8], gatherNumbers[uint16], gatherNumbers[uint32],
			gatherNumbers[uint64])(dst, alphabet, indices, indexWidth)
	}
	count := uint64(len(alphabet) / width)
	for i := range len(indices) / indexWidth {
		index := LE(indices, i, indexWidth)
		if index >= count {
			return false
		}
		copy(dst[i*width:(i+1)*width], alphabet[int(index)*width:])
	}
	return true
}

func gatherNumbers[T unsigned](dst, alphabet, indices []byte, indexWidth int) (ok bool) {
	cast.Fill(dst, func(numbers []T) { ok = gatherWide(numbers, cast.Values[T](alphabet), indices, indexWidth) })
	return ok
}

func gatherWide[T unsigned](dst, alphabet []T, indices []byte, indexWidth int) bool {
	switch indexWidth {
	case 1:
		dst = dst[:len(indices)]
		for i, index := range indices {
			if int(index) >= len(alphabet) {
				return false
			}
			dst[i] = alphabet[index]
		}
		return true
	case 2:
		for i := range dst {
			index := int(binary.LittleEndian.Uint16(indices[2*i:]))
			if index >= len(alphabet) {
				return false
			}
			dst[i] = alphabet[index]
		}
		return true
	}
	for i := range dst {
		index := LE(indices, i, indexWidth)
		if index >= uint64(len(alphabet)) {
			return false
		}
		dst[i] = alphabet[index]
	}
	return true
}
