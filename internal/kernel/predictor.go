// Package kernel holds the inner loops: plain functions over memory that the caller has sized and checked.
// They cannot fail, allocate nothing, and touch only memory of their arguments. A loop that reads bytes as numbers
// (package cast) has a byte-wise twin beside it; tests compare the two bit for bit.
package kernel

import (
	"encoding/binary"
	"slices"

	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/planes"
	"github.com/chaski-eo/chaski/internal/scan"
)

// UndoHorizontal undoes TIFF predictor 2 (TIFF 6.0 section 14) on rows of pitch bytes, of little-endian
// integers of the given size (1, 2, 4 or 8 bytes): each is the difference, modulo its width, to
// the one stride numbers before it in its row. pitch and len(rows) must be multiples of size; the last row may be cut.
func UndoHorizontal(rows []byte, pitch, size, stride int) {
	if len(rows) == 0 { // of no pitch, too
		return
	}
	if stride == 1 {
		rows = rows[scan.Rows(rows, pitch, size):]
	}
	for row := range slices.Chunk(rows, pitch) {
		undoRow(row, size, stride)
	}
}

func undoRow(row []byte, size, stride int) {
	if stride > 1 || size > 4 { // neighbours of up to 4 bytes have loops of their own
		// The rest is a row of its own that begins with the last numbers that are done: the first stride numbers of a
		// row stay as they are.
		if done := sumStridedSIMD(row, size, stride); done >= stride {
			row = row[(done-stride)*size:]
		}
	}
	switch size {
	case 1:
		prefixSum(row, stride)
	case 2:
		undoNumbers[uint16](row, size, stride)
	case 4:
		undoNumbers[uint32](row, size, stride)
	case 8:
		undoNumbers[uint64](row, size, stride)
	}
}

func undoNumbers[T unsigned](row []byte, size, stride int) {
	if numbers, ok := cast.Of[T](row); ok {
		prefixSum(numbers, stride)
		return
	}
	undoHorizontalBytes(row, size, stride)
}

func prefixSum[T unsigned](s []T, stride int) {
	if stride == 1 {
		scan.Sum(s, s, 0)
		return
	}
	for first := range s[:min(stride, len(s))] {
		// The sum stays in a register, so it does not wait for the memory of the one before.
		var sum T
		for i := first; i < len(s); i += stride {
			sum += s[i]
			s[i] = sum
		}
	}
}

// undoHorizontalBytes is the byte-wise twin: addition with carry, least significant byte first.
func undoHorizontalBytes(row []byte, size, stride int) {
	for i := stride * size; i+size <= len(row); i += size {
		carry := 0
		for byteIndex := range size {
			sum := int(row[i+byteIndex]) + int(row[i+byteIndex-stride*size]) + carry
			row[i+byteIndex], carry = byte(sum), sum>>8
		}
	}
}

// UndoFloatPredictor undoes TIFF predictor 3 (TIFF Technical Note 3) on rows of len(tmp) bytes, a multiple of size. The
// bytes are differences at a distance of stride bytes, in size planes, at most planes.MaxFast, most significant first.
// The result is little-endian numbers. len(rows) must be a multiple of len(tmp).
func UndoFloatPredictor(rows, tmp []byte, size, stride int) {
	pitch, count := len(tmp), len(tmp)/size
	var least [planes.MaxFast][]byte // from the least significant bytes on
	for plane := range size {
		least[size-1-plane] = tmp[plane*count : (plane+1)*count]
	}
	for pair := range slices.Chunk(rows, 2*pitch) { // what UndoHorizontal takes at a time
		UndoHorizontal(pair, pitch, 1, stride)
		for row := range slices.Chunk(pair, pitch) {
			copy(tmp, row)
			planes.JoinAll(row, least[:size])
		}
	}
}

// SwapBytes reverses the bytes of every number of the given size (1, 2, 4 or 8).
func SwapBytes(b []byte, size int) {
	switch size {
	case 2:
		const low = 0x00ff00ff00ff00ff
		for ; len(b) >= 8; b = b[8:] {
			four := binary.LittleEndian.Uint64(b)
			binary.LittleEndian.PutUint64(b, four>>8&low|four&low<<8)
		}
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
