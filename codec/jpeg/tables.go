package jpeg

// zigzag maps the order of coefficients in a stream to rows of 8 (ITU-T T.81, figure A.6).
var zigzag = makeZigzag()

func makeZigzag() (z [64]uint8) {
	x, y := 0, 0
	for i := range z {
		z[i] = uint8(8*y + x)
		up := (x+y)%2 == 0
		switch {
		case up && x == 7:
			y++
		case up && y == 0:
			x++
		case up:
			x, y = x+1, y-1
		case y == 7:
			x++
		case x == 0:
			y++
		default:
			x, y = x-1, y+1
		}
	}
	return z
}

// tableSet holds tables of a stream.
type tableSet struct {
	quant  [4][64]int32 // in rows of 8
	dc, ac [4]huffman
	has    [3][4]bool // quant, dc, ac
}

func (t *tableSet) clear() { t.has = [3][4]bool{} }

// quants returns the tables that exist.
func (t *tableSet) quants() (quant [4]*[64]int32, dc, ac [4]*huffman) {
	for i := range 4 {
		if t.has[0][i] {
			quant[i] = &t.quant[i]
		}
		if t.has[1][i] {
			dc[i] = &t.dc[i]
		}
		if t.has[2][i] {
			ac[i] = &t.ac[i]
		}
	}
	return quant, dc, ac
}

// quantTables reads a DQT segment.
func (d *Decoder) quantTables(own *tableSet, b []byte) error {
	for len(b) > 0 {
		id, size := int(b[0]&15), 64*(1+int(b[0]>>4))
		b = b[1:]
		if id > 3 || size > 128 || len(b) < size {
			return corrupt("a quantisation table %d of %d bytes, of which %d are there", id, size, len(b))
		}
		q := &own.quant[id]
		for i := range 64 {
			if size == 64 {
				q[zigzag[i]] = int32(b[i])
			} else {
				q[zigzag[i]] = int32(b[2*i])<<8 | int32(b[2*i+1])
			}
		}
		own.has[0][id] = true
		d.quant[id] = q
		b = b[size:]
	}
	return nil
}

// huffmanTables reads a DHT segment.
func (d *Decoder) huffmanTables(own *tableSet, b []byte) error {
	for len(b) > 0 {
		if len(b) < 17 {
			return corrupt("a Huffman table ends early")
		}
		class, id := int(b[0]>>4), int(b[0]&15)
		if class > 1 || id > 3 {
			return corrupt("a Huffman table of class %d with number %d", class, id)
		}
		h, target := &own.dc[id], &d.dc[id]
		if class == 1 {
			h, target = &own.ac[id], &d.ac[id]
		}
		n := 0
		for _, c := range b[1:17] {
			n += int(c)
		}
		if n > 256 || len(b) < 17+n {
			return corrupt("a Huffman table of %d codes ends early", n)
		}
		if !h.build((*[16]byte)(b[1:17]), b[17:17+n], class == 0) {
			return corrupt("a Huffman table with more codes than fit, or lengths that do not exist")
		}
		own.has[1+class][id] = true
		*target = h
		b = b[17+n:]
	}
	return nil
}

// lutBits is the length of the codes that one look-up decodes: nearly all codes of photographs.
const lutBits = 10

// huffman decodes one code.
type huffman struct {
	lut   [1 << lutBits]uint16 // length<<8 | symbol of the code that these bits begin with; 0 for a longer one
	short [1 << lutBits]int16  // value<<8 | run<<4 | bits of a code and its value together; 0 for none
	limit [18]int32            // by length: first number of 16 bits that is above all codes of it
	delta [17]int32            // by length: what to add to a code to get the place of its symbol
	vals  [256]byte
}

// build makes the table of a code with that many codes of each length. It reports false if they are too many,
// or if a symbol of a DC code is above 15.
func (h *huffman) build(counts *[16]byte, vals []byte, dc bool) bool {
	clear(h.lut[:])
	clear(h.short[:])
	clear(h.vals[copy(h.vals[:], vals):])
	code, k := int32(0), int32(0)
	for n := int32(1); n <= 16; n++ {
		count := int32(counts[n-1])
		h.delta[n] = k - code
		if code+count > 1<<n {
			return false
		}
		for range count {
			if dc && vals[k] > 15 {
				return false
			}
			if n <= lutBits {
				first := code << (lutBits - n)
				for i := range int32(1) << (lutBits - n) {
					h.lut[first+i] = uint16(n)<<8 | uint16(vals[k])
				}
			}
			code, k = code+1, k+1
		}
		h.limit[n] = code << (16 - n)
		code <<= 1
	}
	h.limit[17] = 1 << 30
	if !dc {
		h.shorten()
	}
	return true
}

// shorten fills short: codes whose value is among the bits of the same look-up.
func (h *huffman) shorten() {
	for i, e := range h.lut {
		n, run, size := int(e>>8), int(e>>4&15), int(e&15)
		if n == 0 || size == 0 || n+size > lutBits {
			continue
		}
		v := i >> (lutBits - n - size) & (1<<size - 1)
		if v < 1<<(size-1) {
			v += -1<<size + 1
		}
		if v >= -128 && v < 128 {
			h.short[i] = int16(v<<8 | run<<4 | (n + size))
		}
	}
}
