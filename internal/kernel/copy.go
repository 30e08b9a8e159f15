package kernel

import "encoding/binary"

// Fill fills dst with copies of value. len(dst) must be a multiple of len(value).
func Fill(dst, value []byte) {
	// The source doubles until it has 4 KiB, so it stays in the first-level cache.
	size := len(value)
	limit := max(4096/max(size, 1), 1) * size
	for done := copy(dst, value); done > 0 && done < len(dst); {
		done += copy(dst[done:], dst[:min(done, limit)])
	}
}

// CopyStrided copies n pieces of size bytes, which are from bytes apart in src and to bytes apart in dst.
func CopyStrided(dst, src []byte, n, to, from, size int) {
	le := binary.LittleEndian
	switch size {
	case 1:
		for i := range n {
			dst[i*to] = src[i*from]
		}
	case 2:
		for i := range n {
			le.PutUint16(dst[i*to:], le.Uint16(src[i*from:]))
		}
	case 4:
		for i := range n {
			le.PutUint32(dst[i*to:], le.Uint32(src[i*from:]))
		}
	case 8:
		for i := range n {
			le.PutUint64(dst[i*to:], le.Uint64(src[i*from:]))
		}
	default:
		for i := range n {
			copy(dst[i*to:][:size], src[i*from:][:size])
		}
	}
}
