package jpeg

import "github.com/chaski-eo/chaski/fault"

// Markers (ITU-T T.81, table B.1).
const (
	markSOF0 = 0xc0
	markSOF1 = 0xc1
	markSOF2 = 0xc2
	markDHT  = 0xc4
	markJPG  = 0xc8
	markDAC  = 0xcc
	markRST0 = 0xd0
	markRST7 = 0xd7
	markSOI  = 0xd8
	markEOI  = 0xd9
	markSOS  = 0xda
	markDQT  = 0xdb
	markDNL  = 0xdc
	markDRI  = 0xdd
	markTEM  = 0x01
)

// markers reads d.src up to its EOI marker or its end. Tables go to own.
func (d *Decoder) markers(own *tableSet, image bool) error {
	if len(d.src) < 2 || d.src[0] != 0xff || d.src[1] != markSOI {
		return corrupt("no SOI marker")
	}
	d.at = 2
	for {
		m, ok := d.marker()
		if !ok || m == markEOI {
			return nil // finish checks whether the stream is complete
		}
		if m == markSOI || m == markTEM || m >= markRST0 && m <= markRST7 {
			continue
		}
		if len(d.src)-d.at < 2 {
			return corrupt("ends early")
		}
		n := int(d.src[d.at])<<8 | int(d.src[d.at+1])
		if n < 2 || n > len(d.src)-d.at {
			return corrupt("a segment of %d bytes", n)
		}
		body := d.src[d.at+2 : d.at+n]
		d.at += n
		if err := d.segment(own, m, body, image); err != nil {
			return err
		}
	}
}

// marker passes over bytes up to the next marker, and over it.
func (d *Decoder) marker() (byte, bool) {
	for d.at+1 < len(d.src) {
		b := d.src[d.at]
		d.at++
		if b != 0xff {
			continue
		}
		if m := d.src[d.at]; m != 0 && m != 0xff {
			d.at++
			return m, true
		}
	}
	return 0, false
}

// segment reads one segment.
func (d *Decoder) segment(own *tableSet, m byte, body []byte, image bool) error {
	switch {
	case m == markDQT:
		return d.quantTables(own, body)
	case m == markDHT:
		return d.huffmanTables(own, body)
	case m == markDRI:
		if len(body) != 2 {
			return corrupt("a DRI segment of %d bytes", len(body))
		}
		d.restart = int(body[0])<<8 | int(body[1])
	case m == markDAC:
		return unsupported("arithmetic codes")
	case m == markDNL:
		return unsupported("a DNL segment")
	case m == markSOS && image:
		return d.scan(body)
	case m >= markSOF0 && m <= 0xcf && m != markJPG && image:
		return d.header(m, body)
	case m == markSOS || m >= markSOF0 && m <= 0xcf && m != markJPG:
		return corrupt("an image among tables")
	}
	return nil // applications' segments and comments
}

var sofNames = map[byte]string{
	0xc3: "lossless", 0xc5: "hierarchical", 0xc6: "hierarchical", 0xc7: "hierarchical lossless",
	0xc9: "arithmetic codes", 0xca: "arithmetic codes", 0xcb: "lossless with arithmetic codes", 0xcd: "hierarchical",
	0xce: "hierarchical", 0xcf: "hierarchical lossless",
}

// header reads the frame header, and allocates the planes once it agrees with the tile.
func (d *Decoder) header(m byte, body []byte) error {
	if m > markSOF2 {
		return unsupported("%s", sofNames[m])
	}
	f := &d.frame
	if f.n != 0 || len(body) < 6 {
		return corrupt("a second frame header, or one of %d bytes", len(body))
	}
	if body[0] != 8 {
		return unsupported("samples of %d bits", body[0])
	}
	n := int(body[5])
	*f = frame{height: int(body[1])<<8 | int(body[2]), width: int(body[3])<<8 | int(body[4]), hMax: 1, vMax: 1}
	s := &d.shape
	switch {
	case f.width != s.Width || f.height < s.Least || f.height > max(s.Height, s.MaxHeight):
		return corrupt("an image of %d by %d pixels in a tile of %d by %d", f.height, f.width, s.Height, s.Width)
	case n != s.Bands:
		return corrupt("%d components for %d bands", n, s.Bands)
	case n > maxComponents:
		return fault.New(fault.Limit, "jpeg", fault.NoOffset, "%d components, at most %d", n, maxComponents)
	case len(body) != 6+3*n:
		return corrupt("a frame header of %d bytes for %d components", len(body), n)
	case f.height == 0:
		return unsupported("an image whose height follows it")
	}
	for i := range n {
		c, b := &f.component[i], body[6+3*i:]
		*c = component{id: b[0], h: int(b[1] >> 4), v: int(b[1] & 15), quant: int(b[2])}
		if min(c.h, c.v) < 1 || max(c.h, c.v) > 4 || c.quant > 3 {
			return corrupt("component %d has sampling factors %d and %d and quantisation table %d", i, c.h, c.v,
				c.quant)
		}
		for k := range i {
			if f.component[k].id == c.id {
				return corrupt("two components with the id %d", c.id)
			}
		}
		f.hMax, f.vMax = max(f.hMax, c.h), max(f.vMax, c.v)
	}
	f.n = n
	d.progressive = m == markSOF2
	return d.allocate()
}

// allocate sizes the planes.
func (d *Decoder) allocate() error {
	f := &d.frame
	f.mcuX, f.mcuY = ceil(f.width, 8*f.hMax), ceil(f.height, 8*f.vMax)
	planes, coefs := 0, 0
	for i := range f.n {
		c := &f.component[i]
		if f.hMax%c.h != 0 || f.vMax%c.v != 0 {
			return unsupported("sampling factors %d and %d beside %d and %d", c.h, c.v, f.hMax, f.vMax)
		}
		if !d.shape.YCbCr && !d.shape.Repeat && (c.h != f.hMax || c.v != f.vMax) {
			return corrupt("a subsampled component of an image that is not YCbCr")
		}
		c.width, c.height = ceil(f.width*c.h, f.hMax), ceil(f.height*c.v, f.vMax)
		c.bw, c.bh = ceil(c.width, 8), ceil(c.height, 8)
		c.stride = f.mcuX * c.h * 8
		planes += c.stride * f.mcuY * c.v * 8
	}
	if d.progressive {
		coefs = planes
	}
	// Sides are the tile's, rounded up to at most 32, so that planes are at most as large as the tile
	// and its edges, and coefficients twice as large. Memory that far larger tiles needed is not kept.
	d.planes, d.coefs = sized(d.planes, planes), sized(d.coefs, coefs)
	clear(d.coefs)
	pos := 0
	for i := range f.n {
		c := &f.component[i]
		n := c.stride * f.mcuY * c.v * 8
		c.plane = d.planes[pos:][:n]
		if d.progressive {
			c.coefs = d.coefs[pos:][:n]
			for k := range c.known {
				c.known[k] = -1
			}
		}
		pos += n
	}
	return nil
}

// keepBytes is how much memory of each kind a Decoder always keeps for the next tile: a tile of
// 1024 by 1024 pixels of 3 bands.
const keepBytes = 3 << 20

// sized returns a slice of n elements, which is b if it has the room and is not far too large.
func sized[T any](b []T, n int) []T {
	if n <= cap(b) && (cap(b) <= keepBytes || cap(b) <= 4*n) {
		return b[:n]
	}
	return make([]T, n)
}

func ceil(a, b int) int { return (a + b - 1) / b }
