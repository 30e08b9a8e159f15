package kernel

import (
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/scan"
)

// Zigzag undoes the zigzag mapping (0, -1, 1, -2, ... stored as 0, 1, 2, 3, ...) of the numbers of
// width bytes in src. dst and src have one length; they may be the same memory.
func Zigzag(dst, src []byte, width int) {
	cast.ByWidth(width, zigzag[uint8], zigzag[uint16], zigzag[uint32], zigzag[uint64])(dst, src)
}

func zigzag[T unsigned](dst, src []byte) {
	numbers := cast.Values[T](src)
	cast.Fill(dst, func(out []T) { scan.Zigzag(out, numbers) })
}
