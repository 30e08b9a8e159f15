package cursor

import "encoding/binary"

// Packer appends numbers of some bits each, from the least significant bit on.
type Packer struct {
	Dst []byte
	acc uint64 // the bits that fill no byte yet
	n   int    // how many those are, below 8
}

// Put appends the low bits of v, all others being 0.
func (p *Packer) Put(v uint64, width int) {
	// Two halves, because acc may hold 7 bits already: more than 57 would not fit.
	if width > 32 {
		p.Put(v&(1<<32-1), 32)
		v, width = v>>32, width-32
	}
	p.acc |= v << p.n
	for p.n += width; p.n >= 8; p.n -= 8 {
		p.Dst = append(p.Dst, byte(p.acc))
		p.acc >>= 8
	}
}

// Bytes returns all bytes, the last one filled up with zeros, as Align does.
func (p *Packer) Bytes() []byte {
	p.Align()
	return p.Dst
}

// Align fills up the last byte with zeros.
func (p *Packer) Align() {
	if p.n > 0 {
		p.Dst = append(p.Dst, byte(p.acc))
		p.acc, p.n = 0, 0
	}
}

// Unpacker reads the bits that Packer wrote. It must have enough bytes for all reads.
type Unpacker struct {
	Src []byte
	pos int // bits read
}

// Get reads a number of width bits, at most 64.
func (u *Unpacker) Get(width int) uint64 {
	u.pos += width
	return BitsAt(u.Src, u.pos-width, width)
}

// BitsAt returns width bits of src, at most 64, from bit pos on, the lowest first. src must have them.
func BitsAt(src []byte, pos, width int) uint64 {
	first, shift := pos>>3, pos&7
	if first+8 <= len(src) && shift+width <= 64 {
		return binary.LittleEndian.Uint64(src[first:]) >> shift & (1<<width - 1)
	}
	var v uint64
	for i := 0; 8*i < shift+width; i++ { // bytes, the first one from bit shift on
		b := uint64(src[first+i])
		if i == 0 {
			v = b >> shift
		} else {
			v |= b << (8*i - shift)
		}
	}
	return v & (1<<width - 1)
}

// Unpack fills dst with numbers of width bits, at most as many as T has, from the front of src, the lowest bit first.
// src must have their bits, and may have more.
func Unpack[T uint8 | uint16 | uint32 | uint64](dst []T, src []byte, width int) {
	// A word that begins within a byte has 57 bits to use, so as many numbers as fit into these come from one word.
	pos, each, mask := 0, 57/max(width, 1), uint64(1)<<width-1
	for each > 0 && len(dst) > 0 && pos>>3+8 <= len(src) {
		word := binary.LittleEndian.Uint64(src[pos>>3:]) >> (pos & 7)
		part := dst[:min(each, len(dst))]
		for i := range part {
			part[i] = T(word & mask)
			word >>= width & 63
		}
		dst, pos = dst[len(part):], pos+len(part)*width
	}
	for i := range dst {
		dst[i] = T(BitsAt(src, pos+i*width, width))
	}
}

// Spare returns the bits of the last byte that were not read.
func (u *Unpacker) Spare() uint64 {
	if u.pos&7 == 0 {
		return 0
	}
	return uint64(u.Src[u.pos>>3] >> (u.pos & 7))
}
