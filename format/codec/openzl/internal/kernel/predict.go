package kernel

import "github.com/chaski-eo/chaski/internal/cast"

// ZigzagMap maps numbers of width bytes in place: 0, -1, 1, -2, ... become 0, 1, 2, 3, ....
func ZigzagMap(b []byte, width int) {
	cast.ByWidth(width, zigzagMap[uint8], zigzagMap[uint16], zigzagMap[uint32], zigzagMap[uint64])(b, width)
}

func zigzagMap[T unsigned](numbers []byte, width int) {
	top := uint(8*width - 1)
	cast.Fill(numbers, func(values []T) {
		for i, value := range values {
			values[i] = value<<1 ^ -(value >> top)
		}
	})
}

// PlanarResiduals writes the numbers of width bytes in src, in rows of row numbers, minus W + N - NW: the
// numbers to the left, above, and above to the left; those outside are 0. dst and src have equal lengths and
// do not overlap.
func PlanarResiduals(dst, src []byte, width, row int) {
	cast.ByWidth(width, planarResiduals[uint8], planarResiduals[uint16], planarResiduals[uint32],
		planarResiduals[uint64])(dst, src, row)
}

func planarResiduals[T unsigned](dst, src []byte, row int) {
	numbers := cast.Values[T](src)
	cast.Fill(dst, func(residuals []T) { planarRows(residuals, numbers, row) })
}

func planarRows[T unsigned](dst, src []T, row int) {
	var west T
	for i, v := range src[:row] {
		dst[i] = v - west
		west = v
	}
	for pos := row; pos < len(src); pos += row {
		above, numbers, residuals := src[pos-row:pos], src[pos:pos+row], dst[pos:pos+row]
		var before T // W - NW
		for i, v := range numbers {
			diff := v - above[i]
			residuals[i] = diff - before
			before = diff
		}
	}
}
