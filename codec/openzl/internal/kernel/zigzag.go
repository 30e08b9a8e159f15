package kernel

import (
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/scan"
)

// Zigzag undoes the zigzag mapping (0, -1, 1, -2, ... stored as 0, 1, 2, 3, ...) of the numbers of
// width bytes in src. dst and src have one length; they may be the same memory.
func Zigzag(dst, src []byte, width int) {
	switch width {
	case 1:
		zigzag[uint8](dst, src)
	case 2:
		zigzag[uint16](dst, src)
	case 4:
		zigzag[uint32](dst, src)
	case 8:
		zigzag[uint64](dst, src)
	}
}

func zigzag[T unsigned](dst, src []byte) {
	numbers := cast.Values[T](src)
	cast.Fill(dst, func(d []T) { scan.Zigzag(d, numbers) })
}
