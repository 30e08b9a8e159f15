package lerc

import "slices"

// Modes in which the samples of an image are stored.
const (
	modeTiles = iota
	modeDeltaHuffman
	modeHuffman
	modeFloats
)

// samples reads the samples after the mask.
func (d *Decoder) samples() {
	header, shape := &d.h, &d.s
	d.mins, d.maxs = d.mins[:0], d.maxs[:0]
	for range shape.Bands {
		d.mins, d.maxs = append(d.mins, header.least), append(d.maxs, header.most)
	}
	if header.least == header.most {
		d.constant()
		return
	}
	if header.version >= 4 {
		same := true
		for i := range shape.Bands {
			d.mins[i] = d.value(shape.Type)
		}
		for i := range shape.Bands {
			d.maxs[i] = d.value(shape.Type)
			same = same && d.mins[i] == d.maxs[i]
		}
		if same && d.err == nil {
			d.constant()
			return
		}
	}
	if d.u8() != 0 {
		d.raw()
		return
	}
	bytes := shape.Type <= Uint8 && header.maxError == 0.5
	floats := shape.Type >= Float32 && header.maxError == 0 && header.version >= 6
	if bytes || floats {
		switch mode := d.u8(); {
		case d.err != nil:
			return
		case mode == modeTiles:
		case bytes && mode == modeDeltaHuffman:
			d.deltas()
			return
		case bytes && mode == modeHuffman && header.version >= 4:
			d.codedBytes()
			return
		case floats && mode == modeFloats:
			d.fail(unsupported("lossless floats of version 6"))
			return
		default:
			d.fail(corrupt("mode %d of type %d", mode, shape.Type))
			return
		}
	}
	d.tiles()
}

// constant sets all valid pixels to the least sample of each band.
func (d *Decoder) constant() {
	pos := 0
	for pixel := range d.s.Width * d.s.Height {
		valid := d.isValid(pixel)
		for _, least := range d.mins {
			if valid {
				put(d.out[pos:], d.s.Type, least)
			}
			pos += d.size
		}
	}
}

// raw reads valid pixels that are not compressed.
func (d *Decoder) raw() {
	size := d.size * d.s.Bands
	for pixel := range d.s.Width * d.s.Height {
		if d.isValid(pixel) {
			if copy(d.out[pixel*size:][:size], d.bytes(size)); d.err != nil {
				return
			}
		}
	}
}

// rect is a block of an image: rows and columns from, up to and without, to.
type rect struct{ y0, y1, x0, x1 int }

func (d *Decoder) tiles() {
	side := d.h.blockSide
	for y := 0; y < d.s.Height; y += side {
		for x := 0; x < d.s.Width; x += side {
			block := rect{y, min(y+side, d.s.Height), x, min(x+side, d.s.Width)}
			for band := range d.s.Bands {
				if d.tile(block, band); d.err != nil {
					return
				}
			}
		}
	}
}

// How a block is stored.
const (
	blockRaw = iota
	blockStuffed
	blockZero
	blockConstant
)

// narrower returns the type in which the offset of a block is stored.
func narrower(t Type, by int) Type {
	steps := Type(by)
	switch t {
	case Int16, Int32:
		return t - steps
	case Uint16, Uint32:
		return t - 2*steps
	case Float32:
		return [4]Type{Float32, Int16, Uint8, -1}[by]
	case Float64:
		return [4]Type{Float64, Float32, Int32, Int16}[by]
	}
	return t
}

// tile reads one band of a block.
func (d *Decoder) tile(r rect, band int) {
	flags := d.u8()
	diff, check := false, 15
	if d.h.version >= 5 {
		diff, check = flags&4 != 0, 14
	}
	if d.err == nil && (flags>>2&check != r.x0>>3&check || diff && band == 0) {
		d.fail(corrupt("a block with the flags %#x in column %d", flags, r.x0))
	}
	if d.err != nil {
		return
	}
	kind := flags & 3
	if kind == blockRaw {
		if diff {
			d.fail(corrupt("a block with the flags %#x", flags))
		}
		d.rawBlock(r, band)
		return
	}
	offset, count := 0.0, (r.y1-r.y0)*(r.x1-r.x0)
	d.block = d.block[:0]
	if kind != blockZero {
		stored := d.s.Type
		if diff && stored < Float32 {
			stored = Int32
		}
		if stored = narrower(stored, flags>>6); stored < 0 || stored >= numTypes {
			d.fail(corrupt("a block with the flags %#x", flags))
			return
		}
		offset = d.value(stored)
	}
	switch {
	case diff || d.err != nil:
	case kind == blockStuffed && d.wide(r, offset):
		return
	case kind == blockZero:
		return // as the samples are already
	}
	if kind == blockStuffed {
		d.stuffed(count)
	}
	if d.err == nil {
		d.place(r, band, offset, diff, kind)
	}
}

// rawBlock reads samples as they are.
func (d *Decoder) rawBlock(block rect, band int) {
	for y := block.y0; y < block.y1; y++ {
		for x := block.x0; x < block.x1; x++ {
			pixel := y*d.s.Width + x
			if d.isValid(pixel) {
				if copy(d.out[(pixel*d.s.Bands+band)*d.size:][:d.size], d.bytes(d.size)); d.err != nil {
					return
				}
			}
		}
	}
}

// place writes a block: its offset, plus what d.block has for each valid pixel, plus the band before.
func (d *Decoder) place(block rect, band int, offset float64, diff bool, kind int) {
	bands, width := d.s.Bands, block.x1-block.x0
	count := width * (block.y1 - block.y0)
	line := linearScale{d.s.Type, band, bands, offset, 2 * d.h.maxError, d.maxs[band]}
	every := len(d.mask) == 0 || len(d.block) == count
	if kind != blockStuffed {
		d.block = slices.Grow(d.block[:0], count)[:count]
		clear(d.block)
		if !diff {
			line.highest = offset
		}
	}
	// The fast loops look neither at the mask nor at the band before, so they need whole blocks of valid pixels.
	if every && !diff && len(d.block) >= count && d.put(&line, block) {
		return
	}
	start := 0
	for y := block.y0; y < block.y1; y++ {
		for x := block.x0; x < block.x1; x++ {
			pixel := y*d.s.Width + x
			if !every && !d.isValid(pixel) {
				continue
			}
			if start == len(d.block) {
				d.fail(corrupt("a block of %d samples, where there are more", start))
				return
			}
			pos := (pixel*bands + band) * d.size
			sample := line.value(d.block[start])
			if diff {
				sample = offset + float64(float64(d.block[start])*line.scale) + get(d.out[pos-d.size:], line.t)
				sample = min(sample, line.highest)
			}
			put(d.out[pos:], line.t, sample)
			start++
		}
	}
}

// linearScale says how numbers of a block become samples: offset + number × scale, at most highest.
type linearScale struct {
	t                      Type
	band, bands            int
	offset, scale, highest float64
}

func (l *linearScale) value(number uint32) float64 {
	// The product is rounded first, so no machine fuses it with the sum.
	sample := l.offset + float64(float64(number)*l.scale)
	if l.highest < sample {
		return l.highest
	}
	return sample
}

// put writes a whole block of the types that most images have, for which integers do if the samples are integers. It
// reports false if the block is another.
func (d *Decoder) put(l *linearScale, block rect) bool {
	offset, scale, highest := int64(l.offset), int64(l.scale), int64(l.highest)
	same := float64(offset) == l.offset && float64(scale) == l.scale && float64(highest) == l.highest
	// Numbers have 31 bits at most, so nothing overflows.
	whole := same && scale < 1<<31
	if d.floats == nil && (d.shorts == nil || !whole) {
		return false
	}
	numbers, width := d.block, block.x1-block.x0
	for y := block.y0; y < block.y1; y++ {
		first := (y*d.s.Width+block.x0)*l.bands + l.band
		if d.floats != nil {
			l.floats(d.floats[first:], numbers[:width])
		} else {
			putWhole(d.shorts[first:], numbers[:width], l.bands, offset, scale, highest)
		}
		numbers = numbers[width:]
	}
	return true
}

// floats and putWhole need all registers, which inlined they would not have.
//
//go:noinline
func (l *linearScale) floats(dst []float32, numbers []uint32) {
	pos, stride, offset, scale, highest := 0, l.bands, l.offset, l.scale, l.highest
	for _, number := range numbers {
		sample := offset + float64(float64(number)*scale)
		if highest < sample {
			sample = highest
		}
		dst[pos] = float32(sample)
		pos += stride
	}
}

//go:noinline
func putWhole(dst []uint16, numbers []uint32, stride int, offset, scale, highest int64) {
	pos := 0
	for _, number := range numbers {
		dst[pos] = uint16(min(offset+int64(number)*scale, highest))
		pos += stride
	}
}
