package kernel

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/cast"
)

// ZigzagMap maps numbers of width bytes in place: 0, -1, 1, -2, ... become 0, 1, 2, 3, ....
func ZigzagMap(b []byte, width int) {
	switch width {
	case 1:
		zigzagMap[uint8](b, 1)
	case 2:
		zigzagMap[uint16](b, 2)
	case 4:
		zigzagMap[uint32](b, 4)
	case 8:
		zigzagMap[uint64](b, 8)
	}
}

func zigzagMap[T unsigned](b []byte, width int) {
	top := uint(8*width - 1)
	if v, ok := cast.Of[T](b); ok {
		for i, x := range v {
			v[i] = x<<1 ^ -(x >> top)
		}
		return
	}
	for i := range len(b) / width {
		x := T(LE(b, i, width))
		PutLE(b, i, width, uint64(x<<1^-(x>>top)))
	}
}

// PlanarResiduals writes the numbers of width bytes in src, in rows of row numbers, minus W + N - NW: the
// numbers to the left, above, and above to the left; those outside are 0. dst and src have equal lengths and
// do not overlap.
func PlanarResiduals(dst, src []byte, width, row int) {
	switch width {
	case 1:
		planarResiduals[uint8](dst, src, 1, row)
	case 2:
		planarResiduals[uint16](dst, src, 2, row)
	case 4:
		planarResiduals[uint32](dst, src, 4, row)
	case 8:
		planarResiduals[uint64](dst, src, 8, row)
	}
}

func planarResiduals[T unsigned](dst, src []byte, width, row int) {
	d, ok := cast.Of[T](dst)
	s, ok2 := cast.Of[T](src)
	if ok && ok2 {
		planarRows(d, s, row)
		return
	}
	sample := func(i int) uint64 { return LE(src, i, width) }
	for i := range len(src) / width {
		v, x, y := sample(i), i%row, i/row
		if x > 0 {
			v -= sample(i - 1)
		}
		if y > 0 {
			v -= sample(i - row)
		}
		if x > 0 && y > 0 {
			v += sample(i - row - 1)
		}
		PutLE(dst, i, width, v)
	}
}

func planarRows[T unsigned](dst, src []T, row int) {
	var w T
	for i, v := range src[:row] {
		dst[i] = v - w
		w = v
	}
	for pos := row; pos < len(src); pos += row {
		up, s, d := src[pos-row:pos], src[pos:pos+row], dst[pos:pos+row]
		var before T // W - NW
		for i, v := range s {
			diff := v - up[i]
			d[i] = diff - before
			before = diff
		}
	}
}

// Split writes byte k of every element of src, width bytes each, to plane k of dst; the planes follow each
// other. dst and src have equal lengths.
func Split(dst, src []byte, width int) {
	n := len(src) / width
	switch width {
	case 2:
		a, b := dst[:n], dst[n:2*n]
		for i := range a {
			v := binary.LittleEndian.Uint16(src[2*i : 2*i+2])
			a[i], b[i] = byte(v), byte(v>>8)
		}
	case 4:
		a, b, c, d := dst[:n], dst[n:2*n], dst[2*n:3*n], dst[3*n:4*n]
		for i := range a {
			v := binary.LittleEndian.Uint32(src[4*i : 4*i+4])
			a[i], b[i], c[i], d[i] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
		}
	default:
		for k := range width {
			for i := range n {
				dst[k*n+i] = src[i*width+k]
			}
		}
	}
}
