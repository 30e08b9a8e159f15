package jpeg

import "cmp"

// scanHeader is the content of an SOS segment.
type scanHeader struct {
	n      int
	comp   [4]int
	dc, ac [4]*huffman
	ss, se int
	ah, al int
}

// scan reads one scan: its header, and its samples or coefficients.
func (d *Decoder) scan(body []byte) error {
	if d.frame.n == 0 {
		return corrupt("a scan before the frame header")
	}
	if d.scans++; d.scans > maxScans {
		return corrupt("more than %d scans", maxScans)
	}
	var header scanHeader
	if err := d.scanHeader(&header, body); err != nil {
		return err
	}
	d.in = bitReader{src: d.src, at: d.at}
	err := d.mcus(&header)
	d.at = d.in.at
	return err
}

// isProgressive reports whether a progressive image may have the scan: all DC coefficients alone, or some AC
// coefficients of one component, each with the bits from al up, or with the bit al alone.
func (s *scanHeader) isProgressive() bool {
	if s.ss == 0 && s.se != 0 || s.ss > 0 && s.n > 1 {
		return false
	}
	return s.ss <= s.se && s.se <= 63 && s.al <= 13 && (s.ah == 0 || s.ah == s.al+1)
}

func (d *Decoder) scanHeader(s *scanHeader, body []byte) error {
	frame := &d.frame
	if len(body) < 1 || body[0] < 1 || body[0] > 4 || len(body) != 4+2*int(body[0]) {
		return corrupt("a scan header of %d bytes", len(body))
	}
	s.n = int(body[0])
	last := body[1+2*s.n:]
	s.ss, s.se, s.ah, s.al = int(last[0]), int(last[1]), int(last[2]>>4), int(last[2]&15)
	if !d.progressive {
		s.ss, s.se, s.ah, s.al = 0, 63, 0, 0 // some writers leave them 0
	} else if !s.isProgressive() {
		return corrupt("a scan of coefficients %d to %d of %d components, bits %d and %d", s.ss, s.se, s.n, s.ah, s.al)
	}
	blocks := 0
	for i := range s.n {
		id, tables := body[1+2*i], body[2+2*i]
		index := 0
		for ; index < frame.n && frame.component[index].id != id; index++ {
		}
		if index == frame.n || i > 0 && index <= s.comp[i-1] {
			return corrupt("a scan of component %d, which does not exist or comes too late", id)
		}
		comp := &frame.component[index]
		if blocks += comp.h * comp.v; s.n > 1 && blocks > 10 {
			return corrupt("more than 10 blocks in an MCU")
		}
		if tables>>4 > 3 || tables&15 > 3 {
			return corrupt("Huffman tables %d and %d", tables>>4, tables&15)
		}
		s.comp[i], s.dc[i], s.ac[i] = index, d.dc[tables>>4], d.ac[tables&15]
		if !d.progressive && (s.dc[i] == nil || s.ac[i] == nil) {
			dc, ac := standard()
			s.dc[i], s.ac[i] = cmp.Or(s.dc[i], dc[tables>>4]), cmp.Or(s.ac[i], ac[tables&15])
		}
		firstDC, anyAC := s.ss == 0 && s.ah == 0, s.se > 0
		if firstDC && s.dc[i] == nil || anyAC && s.ac[i] == nil {
			return corrupt("a Huffman table is missing")
		}
		if err := d.progress(comp, s); err != nil {
			return err
		}
	}
	return nil
}

// progress records which bits a scan adds to a component.
func (d *Decoder) progress(c *bandComponent, s *scanHeader) error {
	if !c.hasScan {
		table := d.quant[c.quant]
		if table == nil {
			return corrupt("quantisation table %d is missing", c.quant)
		}
		c.quantTable = *table
	}
	if !d.progressive {
		if c.hasScan {
			return corrupt("two scans of component %d", c.id)
		}
		c.hasScan = true
		return nil
	}
	c.hasScan = true
	for coefficient := s.ss; coefficient <= s.se; coefficient++ {
		missing := int(c.missingBits[coefficient])
		again, refinesOther := s.ah == 0 && missing >= 0, s.ah > 0 && missing != s.ah
		if again || refinesOther || s.ss > 0 && c.missingBits[0] < 0 {
			return corrupt("scans of coefficient %d are out of order", coefficient)
		}
		c.missingBits[coefficient] = int8(s.al)
	}
	return nil
}

// mcus decodes all MCUs of a scan.
func (d *Decoder) mcus(s *scanHeader) error {
	frame := &d.frame
	across, down := frame.mcuX, frame.mcuY
	if s.n == 1 { // an MCU is one block, and blocks past the image are left out
		comp := &frame.component[s.comp[0]]
		across, down = comp.bw, comp.bh
	} else if !d.progressive && s.n == frame.n {
		// The rows that are needed, and the next one, whose chroma is blended with theirs.
		down = min(down, d.shape.Rows/(8*frame.vMax)+1)
	}
	if frame.n == 1 && !d.progressive {
		down = min(down, ceil(d.shape.Rows, 8))
	}
	scan := progressiveScan{d: d, s: s}
	d.resetPredictions()
	left, next := d.restart, 0
	var block [64]int32
	for y := range down {
		for x := range across {
			if d.restart > 0 && left == 0 {
				if err := d.restartMarker(next); err != nil {
					return err
				}
				scan.eobRun, left, next = 0, d.restart, (next+1)&7
			}
			left--
			var ok bool
			if d.progressive {
				ok = scan.mcu(x, y)
			} else {
				ok = d.mcu(s, &block, x, y)
			}
			if !ok {
				return corrupt("an invalid code in row %d of the MCUs", y)
			}
		}
		// Zeros follow the end of the stream and may be valid codes, so only the count of bits shows it.
		if d.in.isPastEnd() {
			return corrupt("ends early, in row %d of the MCUs", y)
		}
	}
	return nil
}

func (d *Decoder) resetPredictions() {
	for i := range d.frame.n {
		d.frame.component[i].dcPred = 0
	}
}

// restartMarker passes over the restart marker with that number.
func (d *Decoder) restartMarker(number int) error {
	if d.in.isPastEnd() {
		return corrupt("ends early, before restart marker %d", number)
	}
	d.at = d.in.at
	if marker, ok := d.marker(); !ok || int(marker) != markRST0+number {
		return corrupt("restart marker %d is missing", number)
	}
	d.in = bitReader{src: d.src, at: d.at}
	d.resetPredictions()
	return nil
}

// mcu decodes one MCU of a sequential scan; false if it holds an invalid code.
func (d *Decoder) mcu(s *scanHeader, block *[64]int32, x, y int) bool {
	for i := range s.n {
		comp := &d.frame.component[s.comp[i]]
		across, down := comp.h, comp.v
		if s.n == 1 {
			across, down = 1, 1
		}
		for row := y * down; row < y*down+down; row++ {
			for column := x * across; column < x*across+across; column++ {
				last := d.block(block, comp, s.dc[i], s.ac[i])
				if last < 0 {
					return false
				}
				inverse(comp.plane[row*8*comp.stride+column*8:], comp.stride, block, last)
			}
		}
	}
	return true
}

// block decodes the coefficients of a block and multiplies them by their quantisation. It returns the place of
// the last one, in the order of the stream, or -1 if there is an invalid code.
func (d *Decoder) block(block *[64]int32, c *bandComponent, dc, ac *huffman) int {
	*block = [64]int32{}
	in := &d.in
	quant := &c.quantTable
	size, ok := in.symbol(dc)
	if !ok {
		return -1
	}
	c.dcPred += in.extended(int(size))
	block[0] = c.dcPred * quant[0]
	last := 0
	for k := 1; k < 64; k++ {
		if in.n < 32 { // enough for a code of 16 bits and its value of 15
			in.fill()
		}
		bits := in.acc >> (in.n - lutBits) & (1<<lutBits - 1)
		if short := ac.short[bits]; short != 0 {
			in.n -= int(short & 15)
			if k += int(short >> 4 & 15); k > 63 {
				return -1
			}
			place := zigzag[k]
			block[place] = int32(short>>8) * quant[place]
			last = k
			continue
		}
		sym := byte(ac.lut[bits])
		if entry := ac.lut[bits]; entry != 0 {
			in.n -= int(entry >> 8)
		} else if sym, ok = in.longSymbol(ac); !ok {
			return -1
		}
		run, size := int(sym>>4), int(sym&15)
		if size == 0 {
			if run != 15 {
				break
			}
			k += 15
			continue
		}
		if k += run; k > 63 {
			return -1
		}
		in.n -= size
		value := int32(in.acc>>in.n) & (1<<size - 1)
		if value < 1<<(size-1) {
			value += -1<<size + 1
		}
		place := zigzag[k&63]
		block[place] = value * quant[place]
		last = k
	}
	return last
}
