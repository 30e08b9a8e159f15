package kernel

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/cast"
)

// Gather writes the element of alphabet for every index of indexWidth bytes to dst. It reports whether all
// elements exist. Elements have width bytes; dst has as many elements as there are indices.
func Gather(dst, alphabet, indices []byte, width, indexWidth int) bool {
	if width == 1 || width == 2 || width == 4 || width == 8 {
		return cast.ByWidth(width, gatherNumbers[uint8], gatherNumbers[uint16], gatherNumbers[uint32],
			gatherNumbers[uint64])(dst, alphabet, indices, indexWidth)
	}
	n := uint64(len(alphabet) / width)
	for i := range len(indices) / indexWidth {
		k := LE(indices, i, indexWidth)
		if k >= n {
			return false
		}
		copy(dst[i*width:(i+1)*width], alphabet[int(k)*width:])
	}
	return true
}

func gatherNumbers[T unsigned](dst, alphabet, indices []byte, indexWidth int) (ok bool) {
	cast.Fill(dst, func(d []T) { ok = gatherWide(d, cast.Values[T](alphabet), indices, indexWidth) })
	return ok
}

func gatherWide[T unsigned](dst, alphabet []T, indices []byte, indexWidth int) bool {
	switch indexWidth {
	case 1:
		dst = dst[:len(indices)]
		for i, k := range indices {
			if int(k) >= len(alphabet) {
				return false
			}
			dst[i] = alphabet[k]
		}
		return true
	case 2:
		for i := range dst {
			k := int(binary.LittleEndian.Uint16(indices[2*i:]))
			if k >= len(alphabet) {
				return false
			}
			dst[i] = alphabet[k]
		}
		return true
	}
	for i := range dst {
		k := LE(indices, i, indexWidth)
		if k >= uint64(len(alphabet)) {
			return false
		}
		dst[i] = alphabet[k]
	}
	return true
}
