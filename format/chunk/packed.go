package chunk

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Samples whose width no DType has are packed (Index.Packed): they follow each other without gaps,
// the most significant bit first, and rows are padded to whole bytes. They decode to the next larger DType. 24
// bits are three bytes: floats with 7 bits of exponent in the byte order of the file, and integers in the other
// one, as GDAL writes and reads them. Masks of one bit (Index.Bits) are packed the same way.

// packedFits reports whether samples of x.Packed bits can be decoded to x.DType.
func (x *Index) packedFits() bool {
	var fits bool
	switch x.DType {
	case Uint8:
		fits = x.Packed >= 1 && x.Packed < 8
	case Uint16:
		fits = x.Packed > 8 && x.Packed < 16
	case Uint32:
		fits = x.Packed > 16 && x.Packed < 32
	case Float32:
		fits = x.Packed == 24
	}
	byBand := x.ChunkB == 1 || x.Inner == YXB
	return fits && byBand && !x.Bits && x.Predictor == NoPredictor && !x.OfArray()
}

func (x *Index) isPacked() bool { return x.Bits || x.Packed != 0 }

// packedRow returns the bytes of a row of w pixels of b bands. It is at most as large as the decoded row.
func (x *Index) packedRow(b, w int) int {
	return (w*b*max(x.Packed, 1) + 7) / 8
}

// unpack spreads rows of packed samples. packed may be the end of the buffer that dst is the front of: samples
// stay as large or grow, so writing stays behind reading.
func (x *Index) unpack(dst, packed []byte, b, w int) {
	start, n := x.packedRow(b, w), w*b
	for end := n * x.DType.Size(); len(dst) > 0; dst, packed = dst[end:], packed[start:] {
		switch {
		case x.Packed == 24:
			// GDAL has the bytes of integers in the other order than the bytes of floats.
			float := x.DType == Float32
			unpack24(dst[:end], packed, x.BigEndian == float, float)
		case x.DType == Uint8:
			kernel.Unpack(dst[:end], packed, max(x.Packed, 1))
		default:
			unpackWords(dst[:end], packed, x.Packed, x.DType.Size())
		}
	}
}

// unpackWords unpacks samples of width bits to words of 2 or 4 bytes.
func unpackWords(dst, packed []byte, width, size int) {
	var acc uint64
	have, pos := 0, 0
	for i := 0; i+size <= len(dst); i += size {
		for ; have < width; have += 8 {
			acc = acc<<8 | uint64(packed[pos])
			pos++
		}
		have -= width
		cast.PutUint(dst[i:], size, acc>>have&(1<<width-1))
	}
}

// unpack24 unpacks samples of 3 bytes: integers, or floats of 24 bits.
func unpack24(dst, packed []byte, bigEndian, float bool) {
	for i := 0; i+4 <= len(dst); i += 4 {
		three := packed[i/4*3:][:3]
		word := uint32(three[0]) | uint32(three[1])<<8 | uint32(three[2])<<16
		if bigEndian {
			word = uint32(three[2]) | uint32(three[1])<<8 | uint32(three[0])<<16
		}
		if float {
			word = float24(word)
		}
		binary.LittleEndian.PutUint32(dst[i:], word)
	}
}

// float24 returns the bits of the float32 that equals a float of 24 bits: a sign, 7 bits of exponent with bias
// 63, and 16 bits of fraction.
func float24(v uint32) uint32 {
	sign, exponent, fraction := v>>23<<31, int(v>>16&0x7f), v&0xffff
	switch {
	case exponent == 0x7f: // infinite, or NaN with its fraction
		return sign | 0xff<<23 | fraction<<7
	case exponent == 0:
		// All numbers below the normal ones are normal as float32.
		return sign | math.Float32bits(float32(fraction)*0x1p-78)
	}
	return sign | uint32(exponent-63+127)<<23 | fraction<<7
}

// reverse returns src with the bits of every byte reversed.
func (d *Decoder) reverse(src []byte) []byte {
	d.mirror = slices.Grow(d.mirror[:0], len(src))[:len(src)]
	for i, b := range src {
		d.mirror[i] = bits.Reverse8(b)
	}
	return d.mirror
}
