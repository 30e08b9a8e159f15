package jpeg

import (
	"encoding/hex"
	"sync"
)

// zigzag maps the order of coefficients in a stream to rows of 8 (ITU-T T.81, figure A.6).
var zigzag = makeZigzag()

func makeZigzag() (order [64]uint8) {
	x, y := 0, 0
	for i := range order {
		order[i] = uint8(8*y + x)
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
	return order
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
func (d *Decoder) quantTables(own *tableSet, segment []byte) error {
	for len(segment) > 0 {
		id, size := int(segment[0]&15), 64*(1+int(segment[0]>>4))
		segment = segment[1:]
		if id > 3 || size > 128 || len(segment) < size {
			return corrupt("the quantisation table %d of %d bytes ends after %d", id, size, len(segment))
		}
		table := &own.quant[id]
		for i := range 64 {
			if size == 64 {
				table[zigzag[i]] = int32(segment[i])
			} else {
				table[zigzag[i]] = int32(segment[2*i])<<8 | int32(segment[2*i+1])
			}
		}
		own.has[0][id] = true
		d.quant[id] = table
		segment = segment[size:]
	}
	return nil
}

// huffmanTables reads a DHT segment.
func (d *Decoder) huffmanTables(own *tableSet, segment []byte) error {
	for len(segment) > 0 {
		if len(segment) < 17 {
			return corrupt("a Huffman table ends early")
		}
		class, id := int(segment[0]>>4), int(segment[0]&15)
		if class > 1 || id > 3 {
			return corrupt("a Huffman table of class %d with number %d", class, id)
		}
		table, target := &own.dc[id], &d.dc[id]
		if class == 1 {
			table, target = &own.ac[id], &d.ac[id]
		}
		codes := 0
		for _, count := range segment[1:17] {
			codes += int(count)
		}
		if codes > 256 || len(segment) < 17+codes {
			return corrupt("a Huffman table of %d codes ends early", codes)
		}
		if !table.build((*[16]byte)(segment[1:17]), segment[17:17+codes], class == 0) {
			return corrupt("a Huffman table with more codes than fit, or lengths that do not exist")
		}
		own.has[1+class][id] = true
		*target = table
		segment = segment[17+codes:]
	}
	return nil
}

// annexK has Huffman tables 0 and 1 of T.81, annex K.3, as a DHT segment.
const annexK = "0000010501010101010100000000000000000102030405060708090a0b100002010303020403050504040000017d010203" +
	"00041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738393a4344" +
	"45464748494a535455565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aa" +
	"b2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa010003010101010101" +
	"0101010000000000000102030405060708090a0b110002010204040304070504040001027700010203110405213106124151076171132232" +
	"8108144291a1b1c109233352f0156272d10a162434e125f11718191a262728292a35363738393a434445464748494a535455565758595a63" +
	"6465666768696a737475767778797a82838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6" +
	"c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa"

// standard returns the tables of annexK. As in libjpeg, they stand for tables that a sequential stream lacks, as frames
// of Motion JPEG do.
var standard = sync.OnceValues(func() (dc, ac [4]*huffman) {
	var set tableSet
	segment, err := hex.DecodeString(annexK)
	if err == nil {
		err = new(Decoder).huffmanTables(&set, segment)
	}
	if err != nil {
		panic(err)
	}
	_, dc, ac = set.quants()
	return dc, ac
})

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
	code, place := int32(0), int32(0)
	for length := int32(1); length <= 16; length++ {
		count := int32(counts[length-1])
		h.delta[length] = place - code
		if code+count > 1<<length {
			return false
		}
		for range count {
			if dc && vals[place] > 15 {
				return false
			}
			if length <= lutBits {
				first := code << (lutBits - length)
				for i := range int32(1) << (lutBits - length) {
					h.lut[first+i] = uint16(length)<<8 | uint16(vals[place])
				}
			}
			code, place = code+1, place+1
		}
		h.limit[length] = code << (16 - length)
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
	for i, entry := range h.lut {
		length, run, size := int(entry>>8), int(entry>>4&15), int(entry&15)
		if length == 0 || size == 0 || length+size > lutBits {
			continue
		}
		value := i >> (lutBits - length - size) & (1<<size - 1)
		if value < 1<<(size-1) {
			value += -1<<size + 1
		}
		if value >= -128 && value < 128 {
			h.short[i] = int16(value<<8 | run<<4 | (length + size))
		}
	}
}
