// Package kernel holds the inner loops: plain functions over memory that the caller has sized and checked.
// They allocate nothing, cannot fail, and touch no memory outside their arguments. A loop that reads bytes
// as numbers (package cast) has a byte-wise twin beside it; tests compare the two bit for bit.
package kernel

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/cast"
)

// UndoHorizontal undoes TIFF predictor 2 (TIFF 6.0 section 14) on one row of little-endian
// integers of the given size (1, 2, 4 or 8 bytes): each is the difference, modulo its width, to
// the one stride numbers before it. len(row) must be a multiple of size.
func UndoHorizontal(row []byte, size, stride int) {
	if stride > 1 || size > 2 {
		// The rest is a row of its own that begins with the last numbers that are done: the first stride numbers of a
		// row stay as they are.
		if done := sumStridedSIMD(row, size, stride); done >= stride {
			row = row[(done-stride)*size:]
		}
	}
	switch size {
	case 1:
		prefixSumBytes(row, stride)
	case 2:
		if stride == 1 && prefixSum16(row) {
			return
		}
		if s, ok := cast.Of[uint16](row); ok {
			prefixSum(s, stride)
			return
		}
		undoHorizontalBytes(row, size, stride)
	case 4:
		if s, ok := cast.Of[uint32](row); ok {
			prefixSum(s, stride)
			return
		}
		undoHorizontalBytes(row, size, stride)
	case 8:
		if s, ok := cast.Of[uint64](row); ok {
			prefixSum(s, stride)
			return
		}
		undoHorizontalBytes(row, size, stride)
	}
}

func prefixSum[T uint8 | uint16 | uint32 | uint64](s []T, stride int) {
	if stride == 1 {
		var sum T
		for i, v := range s {
			sum += v
			s[i] = sum
		}
		return
	}
	// Pixels of RGB, of RGB and alpha, and of six bands: sums in registers and no checks of bounds take half of the
	// loop's time.
	switch stride {
	case 3:
		prefixSum3(s)
		return
	case 4:
		prefixSum4(s)
		return
	case 6:
		prefixSum6(s)
		return
	}
	for i := stride; i < len(s); i++ {
		s[i] += s[i-stride]
	}
}

func prefixSum3[T uint8 | uint16 | uint32 | uint64](s []T) {
	var a, b, c T
	for ; len(s) >= 3; s = s[3:] {
		a, b, c = a+s[0], b+s[1], c+s[2]
		s[0], s[1], s[2] = a, b, c
	}
	for i, sum := range []T{a, b}[:len(s)] {
		s[i] += sum
	}
}

func prefixSum4[T uint8 | uint16 | uint32 | uint64](s []T) {
	var a, b, c, d T
	for ; len(s) >= 4; s = s[4:] {
		a, b, c, d = a+s[0], b+s[1], c+s[2], d+s[3]
		s[0], s[1], s[2], s[3] = a, b, c, d
	}
	for i, sum := range []T{a, b, c}[:len(s)] {
		s[i] += sum
	}
}

func prefixSum6[T uint8 | uint16 | uint32 | uint64](s []T) {
	var a, b, c, d, e, f T
	for ; len(s) >= 6; s = s[6:] {
		a, b, c, d, e, f = a+s[0], b+s[1], c+s[2], d+s[3], e+s[4], f+s[5]
		s[0], s[1], s[2], s[3], s[4], s[5] = a, b, c, d, e, f
	}
	for i, sum := range []T{a, b, c, d, e}[:len(s)] {
		s[i] += sum
	}
}

// prefixSumBytes is prefixSum for bytes.
func prefixSumBytes(s []byte, stride int) {
	if stride != 1 {
		prefixSum(s, stride)
		return
	}
	k, sum := sumU8SIMD(s)
	for i := k; i < len(s); i++ {
		sum += s[i]
		s[i] = sum
	}
}

// prefixSum16 sums words with stride 1, aligned or not, if the processor has AVX2. Otherwise it reports
// false.
func prefixSum16(row []byte) bool {
	k, sum := sumU16SIMD(row)
	if k == 0 {
		return false
	}
	for i := 2 * k; i+2 <= len(row); i += 2 {
		sum += binary.LittleEndian.Uint16(row[i:])
		binary.LittleEndian.PutUint16(row[i:], sum)
	}
	return true
}

// undoHorizontalBytes is the byte-wise twin: addition with carry, least significant byte first.
func undoHorizontalBytes(row []byte, size, stride int) {
	for i := stride * size; i+size <= len(row); i += size {
		carry := 0
		for k := range size {
			sum := int(row[i+k]) + int(row[i+k-stride*size]) + carry
			row[i+k], carry = byte(sum), sum>>8
		}
	}
}

// UndoFloatPredictor undoes TIFF predictor 3 (TIFF Technical Note 3) on one row. The bytes are differences
// at a distance of stride bytes, in size planes, most significant first. The result is little-endian
// numbers. len(tmp) must be len(row), a multiple of size.
func UndoFloatPredictor(row, tmp []byte, size, stride int) {
	UndoHorizontal(row, 1, stride)
	copy(tmp, row)
	joinPlanes(row, tmp, size)
}

// joinPlanes builds little-endian numbers from byte planes, most significant first.
func joinPlanes(row, tmp []byte, size int) {
	n := len(row) / size
	switch size {
	case 2:
		hi, lo := tmp[:n], tmp[n:2*n]
		for i := range n {
			binary.LittleEndian.PutUint16(row[2*i:], uint16(hi[i])<<8|uint16(lo[i]))
		}
	case 4:
		joinPlanes4(row, tmp, joinPlanes4SIMD(row, tmp))
	case 8:
		joinPlanes8(row, tmp, joinPlanes8SIMD(row, tmp))
	default:
		for i := range n {
			for k := range size {
				row[i*size+k] = tmp[(size-1-k)*n+i]
			}
		}
	}
}

// joinPlanes4 builds the numbers from number first on.
func joinPlanes4(row, tmp []byte, first int) {
	n := len(row) / 4
	a, b, c, d := tmp[:n], tmp[n:2*n], tmp[2*n:3*n], tmp[3*n:4*n]
	for i := first; i < n; i++ {
		binary.LittleEndian.PutUint32(row[4*i:], uint32(a[i])<<24|uint32(b[i])<<16|uint32(c[i])<<8|uint32(d[i]))
	}
}

// joinPlanes8 builds the numbers from number first on.
func joinPlanes8(row, tmp []byte, first int) {
	n := len(row) / 8
	a, b, c, d := tmp[:n], tmp[n:2*n], tmp[2*n:3*n], tmp[3*n:4*n]
	e, f, g, h := tmp[4*n:5*n], tmp[5*n:6*n], tmp[6*n:7*n], tmp[7*n:8*n]
	for i := first; i < n; i++ {
		hi := uint32(a[i])<<24 | uint32(b[i])<<16 | uint32(c[i])<<8 | uint32(d[i])
		lo := uint32(e[i])<<24 | uint32(f[i])<<16 | uint32(g[i])<<8 | uint32(h[i])
		binary.LittleEndian.PutUint64(row[8*i:], uint64(hi)<<32|uint64(lo))
	}
}

// SwapBytes reverses the bytes of every number of the given size (1, 2, 4 or 8).
func SwapBytes(b []byte, size int) {
	switch size {
	case 2:
		for i := 0; i+2 <= len(b); i += 2 {
			binary.LittleEndian.PutUint16(b[i:], binary.BigEndian.Uint16(b[i:]))
		}
	case 4:
		for i := 0; i+4 <= len(b); i += 4 {
			binary.LittleEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
		}
	case 8:
		for i := 0; i+8 <= len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], binary.BigEndian.Uint64(b[i:]))
		}
	}
}
