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
		marker, ok := d.marker()
		if !ok || marker == markEOI {
			return nil // finish checks whether the stream is complete
		}
		if marker == markSOI || marker == markTEM || marker >= markRST0 && marker <= markRST7 {
			continue
		}
		if len(d.src)-d.at < 2 {
			return corrupt("ends early")
		}
		size := int(d.src[d.at])<<8 | int(d.src[d.at+1])
		if size < 2 || size > len(d.src)-d.at {
			return corrupt("a segment of %d bytes", size)
		}
		body := d.src[d.at+2 : d.at+size]
		d.at += size
		if err := d.segment(own, marker, body, image); err != nil {
			return err
		}
	}
}

// marker passes over bytes up to the next marker, and over it.
func (d *Decoder) marker() (byte, bool) {
	for d.at+1 < len(d.src) {
		value := d.src[d.at]
		d.at++
		if value != 0xff {
			continue
		}
		if marker := d.src[d.at]; marker != 0 && marker != 0xff {
			d.at++
			return marker, true
		}
	}
	return 0, false
}

// segment reads one segment.
func (d *Decoder) segment(own *tableSet, marker byte, body []byte, image bool) error {
	switch {
	case marker == markDQT:
		return d.quantTables(own, body)
	case marker == markDHT:
		return d.huffmanTables(own, body)
	case marker == markDRI:
		if len(body) != 2 {
			return corrupt("a DRI segment of %d bytes", len(body))
		}
		d.restart = int(body[0])<<8 | int(body[1])
	case marker == markDAC:
		return unsupported("arithmetic codes")
	case marker == markDNL:
		return unsupported("a DNL segment")
	case marker == markSOS && image:
		return d.scan(body)
	case marker >= markSOF0 && marker <= 0xcf && marker != markJPG && image:
		return d.header(marker, body)
	case marker == markSOS || marker >= markSOF0 && marker <= 0xcf && marker != markJPG:
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
func (d *Decoder) header(marker byte, body []byte) error {
	if marker > markSOF2 {
		return unsupported("%s", sofNames[marker])
	}
	header := &d.frame
	if header.n != 0 || len(body) < 6 {
		return corrupt("a second frame header, or one of %d bytes", len(body))
	}
	if body[0] != 8 {
		return unsupported("samples of %d bits", body[0])
	}
	bands := int(body[5])
	*header = frameHeader{height: int(body[1])<<8 | int(body[2]), width: int(body[3])<<8 | int(body[4]), hMax: 1,
		vMax: 1}
	shape := &d.shape
	switch {
	case header.width != shape.Width || header.height < shape.Least ||
		header.height > max(shape.Height, shape.MaxHeight):
		return corrupt("an image of %d by %d pixels in a tile of %d by %d", header.height, header.width, shape.Height,
			shape.Width)
	case bands != shape.Bands:
		return corrupt("%d components for %d bands", bands, shape.Bands)
	case bands > maxComponents:
		return fault.New(fault.Limit, "jpeg", "%d components, at most %d", bands, maxComponents)
	case len(body) != 6+3*bands:
		return corrupt("a frame header of %d bytes for %d components", len(body), bands)
	case header.height == 0:
		return unsupported("an image whose height follows it")
	}
	for i := range bands {
		comp, fields := &header.component[i], body[6+3*i:]
		*comp = bandComponent{id: fields[0], h: int(fields[1] >> 4), v: int(fields[1] & 15), quant: int(fields[2])}
		if min(comp.h, comp.v) < 1 || max(comp.h, comp.v) > 4 || comp.quant > 3 {
			return corrupt("component %d has sampling factors %d and %d and quantisation table %d", i, comp.h, comp.v,
				comp.quant)
		}
		for other := range i {
			if header.component[other].id == comp.id {
				return corrupt("two components with the id %d", comp.id)
			}
		}
		header.hMax, header.vMax = max(header.hMax, comp.h), max(header.vMax, comp.v)
	}
	header.n = bands
	d.progressive = marker == markSOF2
	return d.allocate()
}

// allocate sizes the planes.
func (d *Decoder) allocate() error {
	frame := &d.frame
	frame.mcuX, frame.mcuY = ceil(frame.width, 8*frame.hMax), ceil(frame.height, 8*frame.vMax)
	planes, coefs := 0, 0
	for i := range frame.n {
		comp := &frame.component[i]
		if frame.hMax%comp.h != 0 || frame.vMax%comp.v != 0 {
			return unsupported("sampling factors %d and %d beside %d and %d", comp.h, comp.v, frame.hMax, frame.vMax)
		}
		if !d.shape.YCbCr && (comp.h != frame.hMax || comp.v != frame.vMax) {
			return unsupported("a subsampled component of an image that is not YCbCr")
		}
		comp.width, comp.height = ceil(frame.width*comp.h, frame.hMax), ceil(frame.height*comp.v, frame.vMax)
		comp.bw, comp.bh = ceil(comp.width, 8), ceil(comp.height, 8)
		comp.stride = frame.mcuX * comp.h * 8
		planes += comp.stride * frame.mcuY * comp.v * 8
	}
	if d.progressive {
		coefs = planes
	}
	// Sides are the tile's, rounded up to at most 32, so planes are at most as large as the tile
	// and its edges, and coefficients twice as large. Memory that far larger tiles needed is not kept.
	d.planes, d.coefs = sized(d.planes, planes), sized(d.coefs, coefs)
	clear(d.coefs)
	pos := 0
	for i := range frame.n {
		comp := &frame.component[i]
		size := comp.stride * frame.mcuY * comp.v * 8
		comp.plane = d.planes[pos:][:size]
		if d.progressive {
			comp.coefs = d.coefs[pos:][:size]
			for coefficient := range comp.missingBits {
				comp.missingBits[coefficient] = -1
			}
		}
		pos += size
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
