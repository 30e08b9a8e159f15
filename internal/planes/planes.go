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
	n := len(src) / size
	dst = dst[:len(src)]
	copy(dst[n*size:], src[n*size:])
	if size > MaxFast {
		for k := range size {
			joinOne(dst, src[k*n:(k+1)*n], k, size)
		}
		return
	}
	var planes [MaxFast][]byte
	for k := range size {
		planes[k] = src[k*n : (k+1)*n]
	}
	JoinAll(dst[:n*size], planes[:size])
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

func joinOne(dst, plane []byte, k, size int) {
	for i, v := range plane {
		dst[i*size+k] = v
	}
}

// spread puts a zero byte after each of the four bytes of x.
func spread(x uint32) uint64 {
	v := uint64(x)
	v = (v | v<<16) & 0x0000ffff0000ffff
	return (v | v<<8) & 0x00ff00ff00ff00ff
}

// join2Go joins two planes.
func join2Go(dst, a, b []byte) {
	b = b[:len(a)]
	// All lengths are compared, because the compiler then leaves out the bounds checks below.
	for len(a) >= 8 && len(b) >= 8 && len(dst) >= 16 {
		x, y := binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)
		binary.LittleEndian.PutUint64(dst, spread(uint32(x))|spread(uint32(y))<<8)
		binary.LittleEndian.PutUint64(dst[8:16], spread(uint32(x>>32))|spread(uint32(y>>32))<<8)
		a, b, dst = a[8:], b[8:], dst[16:]
	}
	for i := range a {
		dst[2*i], dst[2*i+1] = a[i], b[i]
	}
}

// join4Go joins four planes from byte first on.
func join4Go(dst []byte, p *[4][]byte, first int) {
	n := len(p[0])
	a, b, c, d, dst := p[0], p[1][:n], p[2][:n], p[3][:n], dst[:4*n]
	for i := first; i < n; i++ {
		binary.LittleEndian.PutUint32(dst[4*i:4*i+4], uint32(a[i])|uint32(b[i])<<8|uint32(c[i])<<16|uint32(d[i])<<24)
	}
}

// join8Go joins eight planes from byte first on.
func join8Go(dst []byte, p *[8][]byte, first int) {
	n := len(p[0])
	a, b, c, d := p[0], p[1][:n], p[2][:n], p[3][:n]
	e, f, g, h := p[4][:n], p[5][:n], p[6][:n], p[7][:n]
	for i := first; i < n; i++ {
		lo := uint32(a[i]) | uint32(b[i])<<8 | uint32(c[i])<<16 | uint32(d[i])<<24
		hi := uint32(e[i]) | uint32(f[i])<<8 | uint32(g[i])<<16 | uint32(h[i])<<24
		binary.LittleEndian.PutUint64(dst[8*i:8*i+8], uint64(lo)|uint64(hi)<<32)
	}
}

// Split is the inverse of Join.
func Split(dst, src []byte, size int) {
	n := len(src) / size
	copy(dst[n*size:], src[n*size:])
	switch size {
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
		for k := range size {
			plane := dst[k*n : (k+1)*n]
			for i := range plane {
				plane[i] = src[i*size+k]
			}
		}
	}
}
