package lerc

import "encoding/binary"

// huffman holds the codes of one image of bytes.
type huffman struct {
	lut  [1 << lutBits]uint32 // length<<16 | symbol of the code that these bits begin with; 0 for none
	long []longCode
}

const lutBits = 12

// longCode is a code of more than lutBits.
type longCode struct {
	code   uint32
	length int
	symbol int
}

// wordReader reads bits from little-endian words of 4 bytes, the most significant first.
type wordReader struct {
	src  []byte
	acc  uint64
	have int
	past int // bits that src does not have
	used int // words
}

// peek returns the next 32 bits; zeros follow the end.
func (r *wordReader) peek() uint32 {
	if r.have < 32 {
		var w uint32
		if len(r.src) >= 4 {
			w = binary.LittleEndian.Uint32(r.src)
			r.src = r.src[4:]
			r.used++
		} else {
			r.past += 32
		}
		r.acc = r.acc<<32 | uint64(w)
		r.have += 32
	}
	return uint32(r.acc >> (r.have - 32))
}

func (r *wordReader) isPastEnd() bool { return r.past > r.have }

// maxSymbols is the largest number of codes: one for each byte.
const maxSymbols = 256

// readCodes reads the table of codes, and returns a reader of the bytes after it.
func (d *Decoder) readCodes() *wordReader {
	version, size, start, end := d.i32(), d.i32(), d.i32(), d.i32()
	sized := version >= 2 && 1 <= size && size <= maxSymbols
	placed := 0 <= start && start < min(end, size) && end-start <= size
	if d.err == nil && !(sized && placed) {
		d.fail(corrupt("codes %d to %d of %d, version %d", start, end, size, version))
	}
	if d.err != nil {
		return nil
	}
	d.block = d.block[:0]
	if d.stuffed(end - start); d.err != nil {
		return nil
	}
	if len(d.block) != end-start {
		d.fail(corrupt("%d lengths of %d codes", len(d.block), end-start))
		return nil
	}
	codes := &d.codes
	clear(codes.lut[:])
	codes.long = codes.long[:0]
	reader := wordReader{src: d.b}
	for i, length := range d.block {
		if length == 0 {
			continue
		}
		if length > 32 {
			d.fail(corrupt("a code of %d bits", length))
			return nil
		}
		code, symbol := reader.peek()>>(32-length), (start+i)%size
		reader.have -= int(length)
		if length > lutBits {
			codes.long = append(codes.long, longCode{code, int(length), symbol})
			continue
		}
		first := int(code) << (lutBits - length)
		for entry := range 1 << (lutBits - length) {
			codes.lut[first+entry] = uint32(length)<<16 | uint32(symbol)
		}
	}
	if reader.isPastEnd() {
		d.fail(corrupt("ends early"))
		return nil
	}
	// The samples begin with the next word.
	unread := max(0, reader.have-reader.past) / 32
	d.bytes(4 * (reader.used - unread))
	return &wordReader{src: d.b}
}

// next decodes one symbol. It reports false for an invalid code or the end of the bits.
func (h *huffman) next(r *wordReader) (int, bool) {
	word := r.peek()
	if entry := h.lut[word>>(32-lutBits)]; entry != 0 {
		r.have -= int(entry >> 16)
		return int(entry & 0xffff), !r.isPastEnd()
	}
	for _, long := range h.long {
		if word>>(32-long.length) == long.code {
			r.have -= long.length
			return long.symbol, !r.isPastEnd()
		}
	}
	return 0, false
}

// bias is the difference between a symbol and its byte.
func (d *Decoder) bias() int {
	if d.s.Type == Int8 {
		return 128
	}
	return 0
}

// deltas reads bytes as differences to their left or upper neighbour.
func (d *Decoder) deltas() {
	reader := d.readCodes()
	if reader == nil {
		return
	}
	bands, width, bias := d.s.Bands, d.s.Width, d.bias()
	for band := range bands {
		last := byte(0)
		for y := range d.s.Height {
			for x := range width {
				pixel := y*width + x
				if !d.isValid(pixel) {
					continue
				}
				symbol, ok := d.codes.next(reader)
				if !ok {
					d.fail(corrupt("an invalid code in row %d", y))
					return
				}
				before := last
				if (x == 0 || !d.isValid(pixel-1)) && y > 0 && d.isValid(pixel-width) {
					before = d.out[(pixel-width)*bands+band]
				}
				last = before + byte(symbol-bias)
				d.out[pixel*bands+band] = last
			}
		}
	}
}

// codedBytes reads bytes, each as a code.
func (d *Decoder) codedBytes() {
	reader := d.readCodes()
	if reader == nil {
		return
	}
	bands, bias := d.s.Bands, d.bias()
	for pixel := range d.s.Width * d.s.Height {
		if !d.isValid(pixel) {
			continue
		}
		for band := range bands {
			symbol, ok := d.codes.next(reader)
			if !ok {
				d.fail(corrupt("an invalid code for pixel %d", pixel))
				return
			}
			d.out[pixel*bands+band] = byte(symbol - bias)
		}
	}
}
