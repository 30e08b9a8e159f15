package kernel

import (
	"math/bits"

	"github.com/chaski-eo/chaski/internal/cast"
)

// Blocks are transposed by this many rows and columns of the result at a time.
const (
	// TurnedRows neighbours in the source take 16 to 128 bytes: at most two cache lines of 64.
	TurnedRows = 16
	// TurnedCols is 256, so an index of 8 bits needs no bounds check.
	TurnedCols = 256
	// TurnedBytes holds elements of up to 8 bytes: 32 KiB, the size of a first-level cache.
	TurnedBytes = TurnedRows * TurnedCols * 8
)

// Turn copies rows of cols elements of size bytes (1, 2, 4, 8 or 16): element (row, col) of dst, whose rows are
// pitch elements apart, is element first + row*strideY + col*strideX of src. Strides may be negative.
func Turn(dst, src []byte, first, strideY, strideX, rows, cols, pitch, size int) {
	step := max(strideY, -strideY)
	if strideX == -1 || strideX < 0 && -strideX <= step && Gathers(size, -strideX) {
		for row := range rows {
			last := first + row*strideY
			source := src[(last+(cols-1)*strideX)*size : (last+1)*size]
			mirror(dst[row*pitch*size:(row*pitch+cols)*size], source, -strideX, size)
		}
		return
	}
	if rows == TurnedRows && pitch == TurnedCols && Gathers(size, step) {
		// The numbers of each line side by side first.
		var memory struct {
			_ [0]uint64 // aligned
			b [TurnedRows * TurnedCols * 4]byte
		}
		near := memory.b[:]
		line := TurnedRows * size
		first += min(strideY, 0) * (TurnedRows - 1)
		for i := range cols {
			Copy(near[i*line:], 1, src[(first+i*strideX)*size:], step, TurnedRows, size)
		}
		src, first, strideX, strideY = near[:cols*line], 0, TurnedRows, strideY/step
		if strideY < 0 {
			first = TurnedRows - 1
		}
	}
	if rows == TurnedRows && pitch == TurnedCols && (strideY == 1 || strideY == -1) {
		switch size {
		case 1:
			if turn[uint8](dst, src, first, strideY, strideX, cols) {
				return
			}
		case 2:
			if turn[uint16](dst, src, first, strideY, strideX, cols) {
				return
			}
		case 4:
			if turn[uint32](dst, src, first, strideY, strideX, cols) {
				return
			}
		case 8:
			if turn[uint64](dst, src, first, strideY, strideX, cols) {
				return
			}
		}
	}
	for row := range rows {
		start := (first + row*strideY) * size
		for col := range cols {
			copy(dst[(row*pitch+col)*size:(row*pitch+col+1)*size], src[start+col*strideX*size:])
		}
	}
}

// mirror copies elements that lie stride apart, from the last one of src to the first one.
func mirror(dst, src []byte, stride, size int) {
	if stride == 1 {
		reverse(dst, src, size)
		return
	}
	var near [1024]byte
	for n := len(dst) / size; n > 0; {
		some := min(n, len(near)/size)
		n -= some
		Copy(near[:], 1, src[n*stride*size:], stride, some, size)
		reverse(dst[:some*size], near[:some*size], size)
		dst, src = dst[some*size:], src[:n*stride*size]
	}
}

// reverse copies elements in reverse: src has as many as dst.
func reverse(dst, src []byte, size int) {
	done := reverseSIMD(dst, src, size)
	dst, src = dst[done:], src[:len(src)-done]
	pos := len(src)
	switch size {
	case 1:
		for ; len(dst) >= 8; dst = dst[8:] {
			pos -= 8
			le.PutUint64(dst, bits.ReverseBytes64(le.Uint64(src[pos:])))
		}
	case 2:
		for ; len(dst) >= 8; dst = dst[8:] {
			pos -= 8
			word := bits.RotateLeft64(le.Uint64(src[pos:]), 32)
			le.PutUint64(dst, word>>16&0x0000ffff0000ffff|word&0x0000ffff0000ffff<<16)
		}
	case 4:
		for ; len(dst) >= 8; dst = dst[8:] {
			pos -= 8
			le.PutUint64(dst, bits.RotateLeft64(le.Uint64(src[pos:]), 32))
		}
	}
	for ; len(dst) > 0; dst = dst[size:] {
		pos -= size
		copy(dst[:size], src[pos:])
	}
}

// turn is Turn for TurnedRows rows of TurnedCols elements, and fills cols of them, if the rows of the
// result are neighbouring columns of src. It reports false if the bytes cannot be read as numbers.
func turn[T uint8 | uint16 | uint32 | uint64](dstBytes, srcBytes []byte, first, strideY, strideX, cols int) bool {
	dst, ok1 := cast.Of[T](dstBytes)
	src, ok2 := cast.Of[T](srcBytes)
	if !ok1 || !ok2 {
		return false
	}
	block := (*[TurnedRows * TurnedCols]T)(dst)
	if strideY < 0 {
		first -= TurnedRows - 1
	}
	for i := turnSIMD(dstBytes, srcBytes, first, strideX, cols, len(dstBytes)/len(dst), strideY < 0); i < cols; i++ {
		col := uint8(i)
		line := (*[TurnedRows]T)(src[first+i*strideX:])
		if strideY < 0 {
			for k := range line {
				block[(TurnedRows-1-k)*TurnedCols+int(col)] = line[k]
			}
			continue
		}
		for k := range line {
			block[k*TurnedCols+int(col)] = line[k]
		}
	}
	return true
}
