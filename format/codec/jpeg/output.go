package jpeg

// output writes the first rows of the image to dst, interleaved by pixel.
func (d *Decoder) output(dst []byte, rows int) {
	frame, width := &d.frame, d.shape.Width
	// Each component may need a row of its own, with room for a sample more than the width.
	d.upsampled = sized(d.upsampled, frame.n*(width+8))
	for y := range rows {
		for i := range frame.n {
			d.rows[i] = d.row(&frame.component[i], y, d.upsampled[i*(width+8):(i+1)*(width+8)])[:width]
		}
		target := dst[y*width*frame.n:][:width*frame.n]
		switch {
		case d.shape.YCbCr:
			toRGB(target, d.rows[0], d.rows[1], d.rows[2])
		case frame.n == 1:
			copy(target, d.rows[0])
		default:
			for i := range frame.n {
				for x, sample := range d.rows[i] {
					target[x*frame.n+i] = sample
				}
			}
		}
	}
}

// row returns row y of a component in the image's size. It may use scratch.
func (d *Decoder) row(c *bandComponent, y int, scratch []byte) []byte {
	across, down := d.frame.hMax/c.h, d.frame.vMax/c.v
	near := c.plane[y/down*c.stride:][:c.stride]
	switch {
	case across == 1 && down == 1:
		return near
	case across == 1 && down == 2:
		blendRows(scratch[:c.width], near, d.far(c, y), int32(1+y&1))
	case across == 2 && down == 1 && c.width > 2:
		spread(scratch, near[:c.width])
	case across == 2 && down == 2 && c.width > 2:
		spreadRows(scratch, near[:c.width], d.far(c, y)[:c.width])
	default:
		repeat(scratch[:d.shape.Width], near, across)
	}
	return scratch
}

// repeat fills dst with the samples of src, each that many times.
func repeat(dst, src []byte, times int) {
	for x := range dst {
		dst[x] = src[x/times]
	}
}

// far returns the row of a component of half the height that is second nearest to row y of the image.
func (d *Decoder) far(c *bandComponent, y int) []byte {
	pos := y/2 - 1 + y&1*2
	return c.plane[min(max(pos, 0), c.height-1)*c.stride:][:c.stride]
}

// The three functions below are libjpeg's "fancy" upsampling: a sample is three quarters of the nearest one
// and a quarter of the next one, in each direction; rounding up and down alternates.

func blendRows(dst, near, far []byte, bias int32) {
	for x := range dst {
		dst[x] = byte((3*int32(near[x]) + int32(far[x]) + bias) >> 2)
	}
}

// spread doubles the width of a row of at least 3 samples.
func spread(dst, src []byte) {
	count := len(src)
	dst = dst[:2*count]
	dst[0] = src[0]
	for x := range count - 1 {
		left, right := int32(src[x]), int32(src[x+1])
		dst[2*x+1] = byte((3*left + right + 2) >> 2)
		dst[2*x+2] = byte((left + 3*right + 1) >> 2)
	}
	dst[2*count-1] = src[count-1]
}

// spreadRowsPlain is spread for rows between near and far, in which samples are times 4 before it rounds. The samples
// of dst that start of near and the one behind make are there already, but for the first one.
func spreadRowsPlain(dst, near, far []byte, start int) {
	count := len(near)
	dst, far = dst[:2*count], far[:count]
	sum := func(x int) int32 { return 3*int32(near[x]) + int32(far[x]) }
	dst[0] = byte((4*sum(0) + 8) >> 4)
	left := sum(start)
	for x := start; x < count-1; x++ {
		right := sum(x + 1)
		dst[2*x+1] = byte((3*left + right + 7) >> 4)
		dst[2*x+2] = byte((left + 3*right + 8) >> 4)
		left = right
	}
	dst[2*count-1] = byte((4*left + 7) >> 4)
}

// Factors of the conversion to RGB (ITU-R BT.601 with all values of a byte, as JFIF has it), times 2^16.
const (
	crToR = 91881  // 1.402
	cbToG = -22554 // -0.344136, as libjpeg rounds it
	crToG = -46802 // -0.714136
	cbToB = 116130 // 1.772
)

func toRGBPlain(dst, lumas, cbs, crs []byte) {
	cbs, crs = cbs[:len(lumas)], crs[:len(lumas)]
	for x, luma := range lumas {
		y, cb, cr := int32(luma), int32(cbs[x])-128, int32(crs[x])-128
		const half = 1 << 15
		target := dst[3*x:][:3]
		target[0] = saturate(y + (crToR*cr+half)>>16)
		target[1] = saturate(y + (cbToG*cb+crToG*cr+half)>>16)
		target[2] = saturate(y + (cbToB*cb+half)>>16)
	}
}
