// Package planes joins byte planes to values and splits values into byte planes, as the byteshuffle
// filter of TileDB and Blosc does. Its functions are kernels: they allocate nothing, cannot fail, and
// touch no memory outside their arguments.
package planes

import "encoding/binary"

// Join writes byte k of value i, dst[i*size+k], from src[k*n+i], n = len(src)/size, and copies the bytes behind the
// last whole value. dst and src have one length, and do not overlap.
func Join(dst, src []byte, size int) {
	n := len(src) / size
	dst = dst[:len(src)]
	copy(dst[n*size:], src[n*size:])
	switch size {
	case 1:
		copy(dst, src)
	case 2:
		done := join2(dst, src, n)
		join2Go(dst, src, n, done)
	case 4:
		done := join4(dst, src, n)
		join4Go(dst, src, n, done)
	case 8:
		done := join8(dst, src, n)
		join8Go(dst, src, n, done)
	default:
		joinGo(dst, src, n, size)
	}
}

func joinGo(dst, src []byte, n, size int) {
	for k := range size {
		for i, v := range src[k*n : (k+1)*n] {
			dst[i*size+k] = v
		}
	}
}

// spread puts a zero byte after each of the four bytes of x.
func spread(x uint32) uint64 {
	v := uint64(x)
	v = (v | v<<16) & 0x0000ffff0000ffff
	return (v | v<<8) & 0x00ff00ff00ff00ff
}

// join2Go joins the values from first on.
func join2Go(dst, src []byte, n, first int) {
	a, data := src[first:n], src[n+first:2*n]
	dst, data = dst[2*first:], data[:len(a)]
	// All lengths are compared, because the compiler then leaves out the bounds checks below.
	for len(a) >= 8 && len(data) >= 8 && len(dst) >= 16 {
		x, y := binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(data)
		binary.LittleEndian.PutUint64(dst, spread(uint32(x))|spread(uint32(y))<<8)
		binary.LittleEndian.PutUint64(dst[8:16], spread(uint32(x>>32))|spread(uint32(y>>32))<<8)
		a, data, dst = a[8:], data[8:], dst[16:]
	}
	for i := range a {
		dst[2*i], dst[2*i+1] = a[i], data[i]
	}
}

// join4Go joins the values from first on.
func join4Go(dst, src []byte, n, first int) {
	a, b, c, d := src[:n], src[n:2*n], src[2*n:3*n], src[3*n:4*n]
	for i := first; i < n; i++ {
		binary.LittleEndian.PutUint32(dst[4*i:4*i+4], uint32(a[i])|uint32(b[i])<<8|uint32(c[i])<<16|uint32(d[i])<<24)
	}
}

// join8Go joins the values from first on.
func join8Go(dst, src []byte, n, first int) {
	a, data, c, d := src[:n], src[n:2*n], src[2*n:3*n], src[3*n:4*n]
	e, f, g, h := src[4*n:5*n], src[5*n:6*n], src[6*n:7*n], src[7*n:8*n]
	for i := first; i < n; i++ {
		v := uint64(a[i]) | uint64(data[i])<<8 | uint64(c[i])<<16 | uint64(d[i])<<24 |
			uint64(e[i])<<32 | uint64(f[i])<<40 | uint64(g[i])<<48 | uint64(h[i])<<56
		binary.LittleEndian.PutUint64(dst[8*i:8*i+8], v)
	}
}

// Split is the inverse of Join.
func Split(dst, src []byte, size int) {
	n := len(src) / size
	copy(dst[n*size:], src[n*size:])
	for k := range size {
		plane := dst[k*n : (k+1)*n]
		for i := range plane {
			plane[i] = src[i*size+k]
		}
	}
}
