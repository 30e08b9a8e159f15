package chunk

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// TestUnpack: samples of any number of bits are the bits of the row in their order, most significant first, as a reader
// of single bits has them; a sample of 24 bits has its bytes in the order of the file.
func TestUnpack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		dtype  DType
		lo, hi int // bits of a sample
	}{{Uint8, 1, 7}, {Uint16, 9, 15}, {Uint32, 17, 31}} {
		for width := c.lo; width <= c.hi; width++ {
			if width == 24 { // see TestUnpack24
				continue
			}
			x := &Index{DType: c.dtype, Packed: width}
			const rows, cols = 3, 5
			packed := make([]byte, rows*x.packedRow(1, cols))
			for i := range packed {
				packed[i] = byte(random.Uint32())
			}
			size := c.dtype.Size()
			dst := make([]byte, rows*cols*size)
			x.unpack(dst, packed, 1, cols)
			for row := range rows {
				for col := range cols {
					want := uint32(0)
					for b := range width {
						bit := row*x.packedRow(1, cols)*8 + col*width + b
						want = want<<1 | uint32(packed[bit/8]>>(7-bit%8)&1)
					}
					var sample [4]byte
					copy(sample[:], dst[(row*cols+col)*size:][:size])
					if got := binary.LittleEndian.Uint32(sample[:]); got != want {
						t.Fatalf("%v of %d bits, row %d, column %d: got %#x; want %#x", c.dtype, width, row, col, got,
							want)
					}
				}
			}
		}
	}
}

// TestUnpack24: a float has its three bytes in the order of the file, and an integer in the other one, as GDAL reads
// them.
func TestUnpack24(t *testing.T) {
	// A float of 24 bits: sign, 7 bits of exponent with bias 63, 16 bits of fraction.
	float := func(bits uint32) float64 {
		sign, exponent, fraction := 1-2*float64(bits>>23), int(bits>>16&0x7f), float64(bits&0xffff)
		if exponent == 0 {
			return sign * math.Ldexp(fraction, -16-62)
		}
		return sign * math.Ldexp(1+fraction/65536, exponent-63)
	}
	for _, bits := range []uint32{0, 1, 0x3f0000, 0xbf8000, 0x7e1234, 0x8000ff, 0x010203} {
		big := []byte{byte(bits >> 16), byte(bits >> 8), byte(bits)}
		little := []byte{big[2], big[1], big[0]}
		for _, bigEndian := range []bool{false, true} {
			integer, floating := big, big // GDAL reads integers of a little-endian file as one row of bits
			if bigEndian {
				integer, floating = little, little
			}
			var dst [4]byte
			(&Index{DType: Uint32, Packed: 24, BigEndian: bigEndian}).unpack(dst[:], integer, 1, 1)
			if got := binary.LittleEndian.Uint32(dst[:]); got != bits {
				t.Errorf("integer, big endian %v: got %#x; want %#x", bigEndian, got, bits)
			}
			(&Index{DType: Float32, Packed: 24, BigEndian: !bigEndian}).unpack(dst[:], floating, 1, 1)
			if got := math.Float32frombits(binary.LittleEndian.Uint32(dst[:])); float64(got) != float(bits) {
				t.Errorf("float %#x, big endian %v: got %v; want %v", bits, !bigEndian, got, float(bits))
			}
		}
	}
}

// TestUnpack24Rows: samples of 24 bits follow each other without gaps.
func TestUnpack24Rows(t *testing.T) {
	const rows, cols, bands = 2, 3, 2
	var packed []byte
	for i := range uint32(rows * cols * bands) {
		packed = append(packed, byte(i+1), byte(7*i), byte(31*i))
	}
	dst := make([]byte, 4*rows*cols*bands)
	(&Index{DType: Uint32, Packed: 24}).unpack(dst, packed, bands, cols)
	for i := range uint32(rows * cols * bands) {
		if got, want := binary.LittleEndian.Uint32(dst[4*i:]), (i+1)<<16|7*i<<8|31*i&0xff; got != want {
			t.Errorf("sample %d: got %#x; want %#x", i, got, want)
		}
	}
}
