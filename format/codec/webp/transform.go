package webp

// Kinds of transforms.
const (
	predictor     = 0
	crossColor    = 1
	subtractGreen = 2
	colorIndexing = 3
)

// transform is a change of pixels that a writer made, and that is undone.
type transform struct {
	kind uint32
	w    int      // of the pixels without it
	bits uint     // of a block, or of the pixels in one
	data []uint32 // for each block, or colours
}

// read reads the data of the transform, for an image of h rows.
func (t *transform) read(r *reader, h int) (err error) {
	switch t.kind {
	case predictor, crossColor:
		t.bits = uint(r.read(3)) + 2
		t.data, err = pixels(r, ceil(t.w, t.bits), ceil(h, t.bits), false)
	case colorIndexing:
		colors := int(r.read(8)) + 1
		switch {
		case colors <= 2:
			t.bits = 3
		case colors <= 4:
			t.bits = 2
		case colors <= 16:
			t.bits = 1
		}
		if t.data, err = pixels(r, colors, 1, false); err == nil {
			for index := 1; index < colors; index++ {
				t.data[index] = add(t.data[index], t.data[index-1])
			}
		}
	}
	return err
}

// undo returns the pixels of before.
func (t *transform) undo(pix []uint32, h int) []uint32 {
	switch t.kind {
	case predictor:
		t.unpredict(pix, h)
	case crossColor:
		across := ceil(t.w, t.bits)
		for i, pixel := range pix {
			factors := t.data[i/t.w>>t.bits*across+i%t.w>>t.bits]
			green := int8(pixel >> 8)
			red := byte(int(pixel>>16) + delta(factors, green))
			blue := byte(int(pixel) + delta(factors>>8, green) + delta(factors>>16, int8(red)))
			pix[i] = pixel&0xff00ff00 | uint32(red)<<16 | uint32(blue)
		}
	case subtractGreen:
		for i, pixel := range pix {
			green := pixel >> 8 & 0xff
			pix[i] = pixel&0xff00ff00 | (pixel&0xff00ff+green<<16+green)&0xff00ff
		}
	case colorIndexing:
		return t.unindex(pix, h)
	}
	return pix
}

func delta(factor uint32, v int8) int { return int(int8(factor)) * int(v) >> 5 }

// unindex returns the colours of indices. A pixel holds several indices if the colours are few.
func (t *transform) unindex(pix []uint32, h int) []uint32 {
	out, across, depth := make([]uint32, t.w*h), ceil(t.w, t.bits), uint(8)>>t.bits
	for i := range out {
		y, x := i/t.w, i%t.w
		index := int(pix[y*across+x>>t.bits] >> 8 & 0xff)
		index = index >> (uint(x) & (1<<t.bits - 1) * depth) & (1<<depth - 1)
		if index < len(t.data) { // else transparent black
			out[i] = t.data[index]
		}
	}
	return out
}

const black = 0xff000000

func (t *transform) unpredict(pix []uint32, h int) {
	width, across := t.w, ceil(t.w, t.bits)
	pix[0] = add(pix[0], black)
	for x := 1; x < width; x++ {
		pix[x] = add(pix[x], pix[x-1])
	}
	for y := 1; y < h; y++ {
		pix[y*width] = add(pix[y*width], pix[(y-1)*width])
		modes := t.data[y>>t.bits*across:]
		for x := 1; x < width; x++ {
			i := y*width + x
			// Above and to the right of the last column is the first of this row.
			mode := modes[x>>t.bits] >> 8 & 15
			pix[i] = add(pix[i], predict(mode, pix[i-1], pix[i-width], pix[i-width+1], pix[i-width-1]))
		}
	}
}

// predict returns the prediction of a mode from the pixels left, above, above to the right and above to the left.
func predict(mode, l, t, tr, tl uint32) uint32 {
	switch mode {
	case 1:
		return l
	case 2:
		return t
	case 3:
		return tr
	case 4:
		return tl
	case 5:
		return mean(mean(l, tr), t)
	case 6:
		return mean(l, tl)
	case 7:
		return mean(l, t)
	case 8:
		return mean(tl, t)
	case 9:
		return mean(t, tr)
	case 10:
		return mean(mean(l, tl), mean(t, tr))
	case 11:
		if apart(t, tl) < apart(l, tl) {
			return l
		}
		return t
	case 12:
		return each(func(k uint) int { return at(l, k) + at(t, k) - at(tl, k) })
	case 13:
		average := mean(l, t)
		return each(func(k uint) int { return at(average, k) + (at(average, k)-at(tl, k))/2 })
	}
	return black
}

// add adds pixels byte by byte.
func add(a, b uint32) uint32 {
	return (a&0xff00ff00+b&0xff00ff00)&0xff00ff00 | (a&0xff00ff+b&0xff00ff)&0xff00ff
}

// mean is the mean of two pixels byte by byte, rounded down.
func mean(a, b uint32) uint32 { return (a^b)&0xfefefefe>>1 + a&b }

func at(v uint32, k uint) int { return int(v >> (8 * k) & 0xff) }

// apart is the sum of the differences of the bytes of two pixels.
func apart(a, b uint32) (sum int) {
	for channel := range uint(4) {
		difference := at(a, channel) - at(b, channel)
		sum += max(difference, -difference)
	}
	return sum
}

// each makes a pixel of four numbers, which become bytes.
func each(f func(channel uint) int) (v uint32) {
	for channel := range uint(4) {
		v |= uint32(min(max(f(channel), 0), 255)) << (8 * channel)
	}
	return v
}
