package kernel

import "encoding/binary"

// Join writes byte k of element i, dst[i*width+k], from src[k*n+i], n = len(src)/width. dst and
// src have one length, a multiple of width, which is 2, 4 or 8.
func Join(dst, src []byte, width int) {
	n := len(src) / width
	a, b := src[:n], src[n:2*n]
	switch width {
	case 2:
		// Four at a time, in a word.
		for len(a) >= 4 && len(b) >= 4 && len(dst) >= 8 {
			lo, hi := spread(binary.LittleEndian.Uint32(a)), spread(binary.LittleEndian.Uint32(b))
			binary.LittleEndian.PutUint64(dst, lo|hi<<8)
			a, b, dst = a[4:], b[4:], dst[8:]
		}
		for i, x := range a {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(x)|uint16(b[i])<<8)
		}
	case 4:
		c, d := src[2*n:3*n], src[3*n:4*n]
		for i, x := range a {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(x)|uint32(b[i])<<8|uint32(c[i])<<16|uint32(d[i])<<24)
		}
	default:
		c, d, e, f, g, h := src[2*n:3*n], src[3*n:4*n], src[4*n:5*n], src[5*n:6*n], src[6*n:7*n], src[7*n:8*n]
		for i, x := range a {
			lo := uint32(x) | uint32(b[i])<<8 | uint32(c[i])<<16 | uint32(d[i])<<24
			hi := uint32(e[i]) | uint32(f[i])<<8 | uint32(g[i])<<16 | uint32(h[i])<<24
			binary.LittleEndian.PutUint64(dst[8*i:], uint64(lo)|uint64(hi)<<32)
		}
	}
}

// spread puts the four bytes of v into the lower halves of four numbers of two bytes.
func spread(v uint32) uint64 {
	w := uint64(v)
	w = (w | w<<16) & 0x0000_ffff_0000_ffff
	return (w | w<<8) & 0x00ff_00ff_00ff_00ff
}

// Interleave takes an element from a, then one from b, and so on. len(a) is len(b) or one more,
// and len(dst) their sum.
func Interleave[T Unsigned](dst, a, b []T) {
	for i, v := range b {
		dst[2*i], dst[2*i+1] = a[i], v
	}
	if len(a) > len(b) {
		dst[len(dst)-1] = a[len(a)-1]
	}
}

// Fill sets every element of dst to v.
func Fill[T Unsigned](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// Restore writes values to dst, and pattern where mask is 0. All have one length.
func Restore[T Unsigned](dst, values []T, mask []byte, pattern T) {
	values, mask = values[:len(dst)], mask[:len(dst)]
	for i, v := range values {
		if mask[i] == 0 {
			v = pattern
		}
		dst[i] = v
	}
}

// RestoreGuarded is Restore where a mask of 1 to 3 names the element of near that stands for a
// value that is the pattern itself. It reports whether no mask is higher, nor names an element that
// is the pattern.
func RestoreGuarded[T Unsigned](dst, values []T, mask []byte, near [4]T) bool {
	values, mask = values[:len(dst)], mask[:len(dst)]
	pattern := near[0]
	ok := true
	for i, v := range values {
		m := mask[i]
		n := near[m&3]
		ok = ok && m < 4 && (m == 0 || n != pattern)
		if m == 0 || v == pattern {
			v = n
		}
		dst[i] = v
	}
	return ok
}

// AddBins writes lower[bins[i]] + offsets[i]. It reports whether every bin is below count and every
// offset fits in its bin's bits. All have one length.
func AddBins[T Unsigned](dst []T, bins []byte, offsets []T, lower, mask *[256]uint64, count int) bool {
	bins, offsets = bins[:len(dst)], offsets[:len(dst)]
	ok := true
	for i, o := range offsets {
		b := bins[i]
		ok = ok && int(b) < count && o&^T(mask[b]) == 0
		dst[i] = T(lower[b]) + o
	}
	return ok
}

// MulAdd writes quotients[i]*base + rests[i] and reports whether every rest is below base. All have
// one length.
func MulAdd[T Unsigned](dst, quotients, rests []T, base T) bool {
	quotients, rests = quotients[:len(dst)], rests[:len(dst)]
	ok := true
	for i, r := range rests {
		ok = ok && r < base
		dst[i] = quotients[i]*base + r
	}
	return ok
}
