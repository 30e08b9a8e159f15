package jpeg

// progressiveScan decodes one scan of a progressive stream (ITU-T T.81, annex G).
type progressiveScan struct {
	d      *Decoder
	s      *scanHeader
	eobRun int // blocks, after the current one, that have no further coefficients
}

// mcu decodes one MCU; false if it holds an invalid code.
func (p *progressiveScan) mcu(x, y int) bool {
	scan := p.s
	for i := range scan.n {
		comp := &p.d.frame.component[scan.comp[i]]
		across, down := comp.h, comp.v
		if scan.n == 1 {
			across, down = 1, 1
		}
		for row := y * down; row < y*down+down; row++ {
			for column := x * across; column < x*across+across; column++ {
				coefs := (*[64]int16)(comp.coefs[(row*comp.stride/8+column)*64:])
				if !p.block(coefs, comp, i) {
					return false
				}
			}
		}
	}
	return true
}

func (p *progressiveScan) block(b *[64]int16, c *bandComponent, i int) bool {
	scan, in := p.s, &p.d.in
	switch {
	case scan.ss == 0 && scan.ah == 0:
		size, ok := in.symbol(scan.dc[i])
		if !ok {
			return false
		}
		c.dcPred += in.extended(int(size))
		b[0] = int16(c.dcPred << scan.al)
	case scan.ss == 0:
		b[0] |= int16(in.bit() << scan.al)
	case scan.ah == 0:
		return p.first(b, scan.ac[i])
	default:
		return p.refine(b, scan.ac[i])
	}
	return true
}

// first decodes the first bits of the coefficients of a block.
func (p *progressiveScan) first(b *[64]int16, h *huffman) bool {
	if p.eobRun > 0 {
		p.eobRun--
		return true
	}
	in := &p.d.in
	for k := p.s.ss; k <= p.s.se; k++ {
		sym, ok := in.symbol(h)
		if !ok {
			return false
		}
		run, size := int(sym>>4), int(sym&15)
		switch {
		case size > 0:
			if k += run; k > 63 {
				return false
			}
			b[zigzag[k]] = int16(in.extended(size) << p.s.al)
		case run == 15:
			k += 15
		default:
			p.eobRun = 1<<run - 1 + int(in.bits(run))
			return true
		}
	}
	return true
}

// refine decodes one more bit of the coefficients of a block.
func (p *progressiveScan) refine(b *[64]int16, h *huffman) bool {
	in, k, se := &p.d.in, p.s.ss, p.s.se
	for p.eobRun == 0 && k <= se {
		sym, ok := in.symbol(h)
		if !ok {
			return false
		}
		run, size := int(sym>>4), int(sym&15)
		var value int16
		switch {
		case size == 1:
			if value = -1 << p.s.al; in.bit() == 1 {
				value = 1 << p.s.al
			}
		case size > 1:
			return false
		case run < 15:
			p.eobRun = 1<<run + int(in.bits(run))
		}
		if p.eobRun > 0 {
			break
		}
		if k = p.pass(b, k, run); value != 0 {
			if k > se {
				return false
			}
			b[zigzag[k]] = value
		}
		k++
	}
	if p.eobRun > 0 {
		p.eobRun--
		// A coefficient that is known has a bit in blocks that have ended, too: read these bits.
		p.pass(b, k, 64)
	}
	return true
}

// pass reads one more bit of each coefficient from k on that is not 0, until it has passed over that many that
// are 0 and stands at another. It returns the place.
func (p *progressiveScan) pass(b *[64]int16, k, zeros int) int {
	for ; k <= p.s.se; k++ {
		coef := &b[zigzag[k]]
		if *coef == 0 {
			if zeros == 0 {
				return k
			}
			zeros--
			continue
		}
		if p.d.in.bit() == 0 {
			continue
		}
		if bit := int16(1) << p.s.al; *coef&bit != 0 { // a damaged stream sets a bit twice
			continue
		} else if *coef > 0 {
			*coef += bit
		} else {
			*coef -= bit
		}
	}
	return k
}

// transform computes the samples of a component from its coefficients.
func (d *Decoder) transform(c *bandComponent) {
	var block [64]int32
	for row := range c.bh {
		for column := range c.bw {
			coefs := (*[64]int16)(c.coefs[(row*c.stride/8+column)*64:])
			for i, coef := range coefs {
				block[i] = int32(coef) * c.quantTable[i]
			}
			inverse(c.plane[row*8*c.stride+column*8:], c.stride, &block, 63)
		}
	}
}
