package kernel

// Repeat fills dst with copies of elem, which is not empty; len(dst) is a multiple of its length.
func Repeat(dst, elem []byte) {
	for n := copy(dst, elem); n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}
