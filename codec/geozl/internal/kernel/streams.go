package kernel

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
