package kernel

import "github.com/chaski-eo/chaski/internal/cast"

// Restore writes values to dst, and pattern where mask is 0. All have one length.
func Restore[T Unsigned](dst, values []T, mask []byte, pattern T) {
	values, mask = values[:len(dst)], mask[:len(dst)]
	for i, value := range values {
		if mask[i] == 0 {
			value = pattern
		}
		dst[i] = value
	}
}

// RestoreGuarded is Restore where a mask of 1 to 3 names the element of near that stands for a
// value that is the pattern itself. It reports whether no mask is higher, nor names an element that
// is the pattern.
func RestoreGuarded[T Unsigned](dst, values []T, mask []byte, near [4]T) bool {
	values, mask = values[:len(dst)], mask[:len(dst)]
	pattern := near[0]
	ok := true
	for i, value := range values {
		code := mask[i]
		substitute := near[code&3]
		ok = ok && code < 4 && (code == 0 || substitute != pattern)
		if code == 0 || value == pattern {
			value = substitute
		}
		dst[i] = value
	}
	return ok
}

// AddBins writes lower[bins[i]] + offsets[i], numbers of width bytes. It reports whether every bin is below count and
// every offset fits in its bin's bits. dst and offsets have a number for each bin.
func AddBins(dst, bins, offsets []byte, width int, lower, mask *[256]uint64, count int) bool {
	ok := true
	for i, bin := range bins {
		offset := cast.Uint(offsets[i*width:], width)
		ok = ok && int(bin) < count && offset&^mask[bin] == 0
		cast.PutUint(dst[i*width:], width, lower[bin]+offset)
	}
	return ok
}

// MulAdd writes quotients[i]*base + rests[i], numbers of width bytes, and reports whether every rest is below base.
// All have one length.
func MulAdd(dst, quotients, rests []byte, width int, base uint64) bool {
	ok := true
	for i := 0; i < len(dst); i += width {
		rest := cast.Uint(rests[i:], width)
		ok = ok && rest < base
		cast.PutUint(dst[i:], width, cast.Uint(quotients[i:], width)*base+rest)
	}
	return ok
}
