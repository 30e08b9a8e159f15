//go:build amd64 && !purego && !twins

package scan

import (
	"math/bits"

	"github.com/chaski-eo/chaski/internal/cast"
	"golang.org/x/sys/cpu"
)

// hasAVX2 says whether the loops in fast_amd64.s can run here.
var hasAVX2 = cpu.X86.HasAVX2

// Each loop works on n blocks of 32 bytes, n >= 1, and returns the last sum, without the values
// above. Loops that do not need above ignore it.

//go:noescape
func sum8(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func sumAbove8(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func sumZigzag8(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func sumZigzagAbove8(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func zigzag8(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func add8(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func sum16(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func sumAbove16(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func sumZigzag16(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func sumZigzagAbove16(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func zigzag16(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func add16(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func sum32(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func sumAbove32(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func sumZigzag32(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func sumZigzagAbove32(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func zigzag32(dst, src, above *byte, n int, v uint64) uint64

//go:noescape
func add32(dst, src, above *byte, n int, v uint64) uint64

// rowsBytes bounds the bytes of a call of a loop over rows, because no goroutine is preempted in assembly: 1 MB takes
// some 40 µs.
const rowsBytes = 1 << 20

// Rows replaces the numbers of each row, of 1, 2 or 4 bytes, by their running sums, two rows at a time. A row has pitch
// bytes. It returns the number of bytes done: 0 unless pitch is a multiple of 16. If the number of rows is odd, it
// leaves the last one.
func Rows(rows []byte, pitch, size int) (done int) {
	if !hasAVX2 || pitch <= 0 || pitch%16 != 0 {
		return 0
	}
	for pairs := len(rows) / (2 * pitch); pairs > 0; {
		some := min(pairs, max(rowsBytes/(2*pitch), 1))
		switch size {
		case 1:
			rows8(&rows[done], pitch, some, pitch/16)
		case 2:
			rows16(&rows[done], pitch, some, pitch/16)
		case 4:
			rows32(&rows[done], pitch, some, pitch/16)
		default:
			return 0
		}
		pairs -= some
		done += some * 2 * pitch
	}
	return done
}

// Each of these works on pairs of rows that lie pitch bytes apart, and in each row on n blocks of 16 bytes; all are at
// least 1.

//go:noescape
func rows8(first *byte, pitch, pairs, n int)

//go:noescape
func rows16(first *byte, pitch, pairs, n int)

//go:noescape
func rows32(first *byte, pitch, pairs, n int)

// fast does the front of the work and returns how many numbers that were and the last sum.
func fast[T Unsigned](dst, src, above []T, v T, what int) (int, T) {
	size := bits.Len64(uint64(^T(0))) / 8
	perBlock := 32 / size
	n := min(len(src), len(dst)) / perBlock
	if above != nil {
		n = min(n, len(above)/perBlock)
	}
	dstBytes, _ := cast.Bytes(dst)
	srcBytes, _ := cast.Bytes(src)
	aboveBytes, _ := cast.Bytes(above)
	if n == 0 || size == 8 || !hasAVX2 || min(len(dstBytes), len(srcBytes)) == 0 {
		return 0, v
	}
	d, s, a := &dstBytes[0], &srcBytes[0], &srcBytes[0]
	if above != nil {
		a = &aboveBytes[0]
	}
	var last uint64
	switch size<<3 | what {
	case 1<<3 | plain:
		last = sum8(d, s, a, n, uint64(v))
	case 1<<3 | withAbove:
		last = sumAbove8(d, s, a, n, uint64(v))
	case 1<<3 | zigzag:
		last = sumZigzag8(d, s, a, n, uint64(v))
	case 1<<3 | zigzagAbove:
		last = sumZigzagAbove8(d, s, a, n, uint64(v))
	case 1<<3 | mapping:
		last = zigzag8(d, s, a, n, uint64(v))
	case 1<<3 | adding:
		last = add8(d, s, a, n, uint64(v))
	case 2<<3 | plain:
		last = sum16(d, s, a, n, uint64(v))
	case 2<<3 | withAbove:
		last = sumAbove16(d, s, a, n, uint64(v))
	case 2<<3 | zigzag:
		last = sumZigzag16(d, s, a, n, uint64(v))
	case 2<<3 | zigzagAbove:
		last = sumZigzagAbove16(d, s, a, n, uint64(v))
	case 2<<3 | mapping:
		last = zigzag16(d, s, a, n, uint64(v))
	case 2<<3 | adding:
		last = add16(d, s, a, n, uint64(v))
	case 4<<3 | plain:
		last = sum32(d, s, a, n, uint64(v))
	case 4<<3 | withAbove:
		last = sumAbove32(d, s, a, n, uint64(v))
	case 4<<3 | zigzag:
		last = sumZigzag32(d, s, a, n, uint64(v))
	case 4<<3 | zigzagAbove:
		last = sumZigzagAbove32(d, s, a, n, uint64(v))
	case 4<<3 | mapping:
		last = zigzag32(d, s, a, n, uint64(v))
	case 4<<3 | adding:
		last = add32(d, s, a, n, uint64(v))
	}
	return n * perBlock, T(last)
}
