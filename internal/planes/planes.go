// Package planes joins byte planes to values and splits values into byte planes, as the byteshuffle
// filter of TileDB and Blosc does. Its functions are kernels: they allocate nothing, cannot fail, and
// touch no memory outside their arguments.
package planes

import "encoding/binary"

// MaxFast is the largest size of a value that has a loop of its own.
const MaxFast = 8

// Join writes byte k of value i, dst[i*size+k], from src[k*n+i], n = len(src)/size, and copies the bytes behind the
// last whole value. dst and src have one length, and do not overlap.
func Join(dst, src []byte, size int) {
	count := len(src) / size
	dst = dst[:len(src)]
	copy(dst[count*size:], src[count*size:])
	if size > MaxFast {
		for plane := range size {
			joinOne(dst, src[plane*count:(plane+1)*count], plane, size)
		}
		return
	}
	var planes [MaxFast][]byte
	for plane := range size {
		planes[plane] = src[plane*count : (plane+1)*count]
	}
	JoinAll(dst[:count*size], planes[:size])
}

// JoinAll writes byte i of plane k to dst[i*len(planes)+k]. The planes have one length; dst has the bytes of all, and
// does not overlap with them.
func JoinAll(dst []byte, planes [][]byte) {
	switch len(planes) {
	case 1:
		copy(dst, planes[0])
	case 2:
		join2(dst, planes[0], planes[1])
	case 4:
		join4(dst, (*[4][]byte)(planes))
	case 8:
		join8(dst, (*[8][]byte)(planes))
	default:
		for k, plane := range planes {
			joinOne(dst, plane, k, len(planes))
		}
	}
}

func joinOne(dst, plane []byte, index, size int) {
	for i, value := range plane {
		dst[i*size+index] = value
	}
}

// spread puts a zero byte after each of the four bytes of x.
func spread(x uint32) uint64 {
	spaced := uint64(x)
	spaced = (spaced | spaced<<16) & 0x0000ffff0000ffff
	return (spaced | spaced<<8) & 0x00ff00ff00ff00ff
}

// join2Go joins two planes.
func join2Go(dst, a, b []byte) {
	b = b[:len(a)]
	// All lengths are compared, because the compiler then leaves out the bounds checks below.
	for len(a) >= 8 && len(b) >= 8 && len(dst) >= 16 {
		first, second := binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)
		binary.LittleEndian.PutUint64(dst, spread(uint32(first))|spread(uint32(second))<<8)
		binary.LittleEndian.PutUint64(dst[8:16], spread(uint32(first>>32))|spread(uint32(second>>32))<<8)
		a, b, dst = a[8:], b[8:], dst[16:]
	}
	for i := range a {
		dst[2*i], dst[2*i+1] = a[i], b[i]
	}
}

// join4Go joins four planes from byte first on.
func join4Go(dst []byte, planes *[4][]byte, first int) {
	count := len(planes[0])
	plane0, plane1, plane2, plane3 := planes[0], planes[1][:count], planes[2][:count], planes[3][:count]
	dst = dst[:4*count]
	for i := first; i < count; i++ {
		word := uint32(plane0[i]) | uint32(plane1[i])<<8 | uint32(plane2[i])<<16 | uint32(plane3[i])<<24
		binary.LittleEndian.PutUint32(dst[4*i:4*i+4], word)
	}
}

// join8Go joins eight planes from byte first on.
func join8Go(dst []byte, planes *[8][]byte, first int) {
	count := len(planes[0])
	plane0, plane1, plane2, plane3 := planes[0], planes[1][:count], planes[2][:count], planes[3][:count]
	plane4, plane5, plane6, plane7 := planes[4][:count], planes[5][:count], planes[6][:count], planes[7][:count]
	for i := first; i < count; i++ {
		low := uint32(plane0[i]) | uint32(plane1[i])<<8 | uint32(plane2[i])<<16 | uint32(plane3[i])<<24
		high := uint32(plane4[i]) | uint32(plane5[i])<<8 | uint32(plane6[i])<<16 | uint32(plane7[i])<<24
		binary.LittleEndian.PutUint64(dst[8*i:8*i+8], uint64(low)|uint64(high)<<32)
	}
}

// Split is the inverse of Join.
func Split(dst, src []byte, size int) {
	count := len(src) / size
	copy(dst[count*size:], src[count*size:])
	switch size {
	case 2:
		plane0, plane1 := dst[:count], dst[count:2*count]
		for i := range plane0 {
			value := binary.LittleEndian.Uint16(src[2*i : 2*i+2])
			plane0[i], plane1[i] = byte(value), byte(value>>8)
		}
	case 4:
		plane0, plane1, plane2, plane3 := dst[:count], dst[count:2*count], dst[2*count:3*count], dst[3*count:4*count]
		for i := range plane0 {
			value := binary.LittleEndian.Uint32(src[4*i : 4*i+4])
			plane0[i], plane1[i], plane2[i], plane3[i] = byte(value), byte(value>>8), byte(value>>16), byte(value>>24)
		}
	default:
		for index := range size {
			plane := dst[index*count : (index+1)*count]
			for i := range plane {
				plane[i] = src[i*size+index]
			}
		}
	}
}
