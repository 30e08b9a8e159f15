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

// PlanarZigzag is PlanarResiduals, then ZigzagMap of dst, faster.
func PlanarZigzag(dst, src []byte, width, row int) {
	line := row * width
	if line == 0 {
		return
	}
	first := min(line, len(src))
	PlanarResiduals(dst[:first], src[:first], width, row)
	ZigzagMap(dst[:first], width)
	for pos := line; pos < len(src); pos += line {
		numbers, above, residuals := src[pos:pos+line], src[pos-line:pos], dst[pos:pos+line]
		end := line
		if planarZigzagRow(residuals, numbers, above, width) {
			end = width
		}
		planarZigzagGo(residuals[:end], numbers, above, width)
	}
}

// planarZigzagGo does the first numbers of a row after the first one, as many as dst has.
func planarZigzagGo(dst, src, above []byte, width int) {
	top := uint(64 - 8*width)
	for i := range len(dst) / width {
		v := LE(src, i, width) - LE(above, i, width)
		if i > 0 {
			v -= LE(src, i-1, width) - LE(above, i-1, width)
		}
		v <<= top // so that the sign is the highest bit
		PutLE(dst, i, width, (v<<1^uint64(int64(v)>>63))>>top)
	}
}
