package tog

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/format/chunk"
)

// predict applies a predictor to one chunk of one band, row by row. b holds little-endian samples of size
// bytes, width of them per row, and becomes the bytes to compress. len(tmp) must be the bytes of a row.
func predict(b []byte, p chunk.Predictor, width, size int, tmp []byte) {
	row := width * size
	for ; len(b) > 0; b = b[row:] {
		switch p {
		case chunk.Horizontal:
			difference(b[:row], size)
		case chunk.FloatingPoint:
			planes(b[:row], tmp, size)
		}
	}
}

// difference replaces every integer of a row by its difference, modulo its width, to the one before it.
func difference(row []byte, size int) {
	// From the last to the first, otherwise the one before would be a difference already.
	le := binary.LittleEndian
	switch size {
	case 1:
		for i := len(row) - 1; i > 0; i-- {
			row[i] -= row[i-1]
		}
	case 2:
		for i := len(row) - 2; i > 0; i -= 2 {
			le.PutUint16(row[i:], le.Uint16(row[i:])-le.Uint16(row[i-2:]))
		}
	case 4:
		for i := len(row) - 4; i > 0; i -= 4 {
			le.PutUint32(row[i:], le.Uint32(row[i:])-le.Uint32(row[i-4:]))
		}
	case 8:
		for i := len(row) - 8; i > 0; i -= 8 {
			le.PutUint64(row[i:], le.Uint64(row[i:])-le.Uint64(row[i-8:]))
		}
	}
}

// planes applies the floating-point predictor (TIFF Technical Note 3): the bytes of a row go into planes,
// most significant first, and each byte becomes its difference to the one before it.
func planes(row, tmp []byte, size int) {
	count := len(row) / size
	for i := range count {
		for byteIndex := range size {
			tmp[(size-1-byteIndex)*count+i] = row[i*size+byteIndex]
		}
	}
	row[0] = tmp[0]
	for i := 1; i < len(row); i++ {
		row[i] = tmp[i] - tmp[i-1]
	}
}
