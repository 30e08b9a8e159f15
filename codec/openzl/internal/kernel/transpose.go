package kernel

import "encoding/binary"

// Join writes element i as byte i of every plane, first plane first. The planes have equal lengths; dst has
// len(planes) times that length.
func Join(dst []byte, planes [][]byte) {
	switch len(planes) {
	case 1:
		copy(dst, planes[0])
	case 2:
		join2(dst, planes[0], planes[1])
	case 4:
		join4(dst, planes[0], planes[1], planes[2], planes[3])
	case 8:
		join8(dst, planes)
	default:
		w := len(planes)
		for k, p := range planes {
			for i, v := range p {
				dst[i*w+k] = v
			}
		}
	}
}

// Transpose writes byte b of element e, dst[e*width+b], from src[b*n+e], n = len(src)/width. dst and src have
// equal lengths, a multiple of width.
func Transpose(dst, src []byte, width int) {
	n := len(src) / width
	if width <= 8 {
		var planes [8][]byte
		for b := range width {
			planes[b] = src[b*n : (b+1)*n]
		}
		Join(dst, planes[:width])
		return
	}
	// In tiles of 16 by 16, so that both sides stay in cache: 16 lines of each.
	const tile = 16
	for b0 := 0; b0 < width; b0 += tile {
		b1 := min(b0+tile, width)
		for e0 := 0; e0 < n; e0 += tile {
			e1 := min(e0+tile, n)
			for b := b0; b < b1; b++ {
				for e, v := range src[b*n+e0 : b*n+e1] {
					dst[(e0+e)*width+b] = v
				}
			}
		}
	}
}

// spread2 puts a zero byte after each of the four bytes of x.
func spread2(x uint32) uint64 {
	v := uint64(x)
	v = (v | v<<16) & 0x0000ffff0000ffff
	return (v | v<<8) & 0x00ff00ff00ff00ff
}

func join2Go(dst, a, b []byte) {
	b = b[:len(a)]
	for len(a) >= 8 && len(b) >= 8 && len(dst) >= 16 {
		x, y := binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)
		binary.LittleEndian.PutUint64(dst, spread2(uint32(x))|spread2(uint32(y))<<8)
		binary.LittleEndian.PutUint64(dst[8:16], spread2(uint32(x>>32))|spread2(uint32(y>>32))<<8)
		a, b, dst = a[8:], b[8:], dst[16:]
	}
	for i := range a {
		dst[2*i], dst[2*i+1] = a[i], b[i]
	}
}

func join4Go(dst, a, b, c, d []byte) {
	n := len(a)
	b, c, d, dst = b[:n], c[:n], d[:n], dst[:4*n]
	for i := range a {
		v := uint32(a[i]) | uint32(b[i])<<8 | uint32(c[i])<<16 | uint32(d[i])<<24
		binary.LittleEndian.PutUint32(dst[4*i:4*i+4], v)
	}
}

func join8(dst []byte, p [][]byte) {
	n := len(p[0])
	a, b, c, d := p[0], p[1][:n], p[2][:n], p[3][:n]
	e, f, g, h := p[4][:n], p[5][:n], p[6][:n], p[7][:n]
	for i := range a {
		lo := uint32(a[i]) | uint32(b[i])<<8 | uint32(c[i])<<16 | uint32(d[i])<<24
		hi := uint32(e[i]) | uint32(f[i])<<8 | uint32(g[i])<<16 | uint32(h[i])<<24
		binary.LittleEndian.PutUint64(dst[8*i:8*i+8], uint64(lo)|uint64(hi)<<32)
	}
}
