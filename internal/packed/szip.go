package packed

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/internal/planes"
)

// The filter szip of HDF5: the size of the chunk in 4 bytes, and the chunk as CCSDS 121.0-B has it. Samples of 32 and
// 64 bits are coded as bytes, all first ones in front. The samples of a line are coded in blocks; the first sample of
// a line is stored, and of the others how they differ from the one before, if the options say so.

// Numbers among the parameters of szip, by their places, and bits of the first one.
const (
	szipOptions = 0
	szipBlock   = 1 // samples of a block
	szipBits    = 2 // of a sample
	szipLine    = 3 // samples of a line

	szipBig    = 16 // samples are big-endian
	szipDiffer = 32 // samples are differences

	szipHead     = 4
	maxSzipBlock = 64
	maxSzipBits  = 24 // of samples that are not coded as bytes
)

const (
	// szipSegment is the most blocks that a number of blocks of zeros counts: those of a line are counted in parts.
	szipSegment = 64
	// szipRest stands for all blocks that are left of such a part; higher numbers are one too high.
	szipRest = 5
)

// szipDecoder decodes the samples of a chunk.
type szipDecoder struct {
	bitReader
	width  int // of a sample in bits
	id     int // bits of the number that says how a block is coded
	differ bool
	block  []uint32 // the numbers of the block, in memory
	memory [maxSzipBlock]uint32
	blocks int // of a whole line
	zeros  int // blocks of zeros that follow
}

// szipSample returns the bits and the bytes of what is coded, and how many of these are a sample.
func (p Parameters) szipSample() (width, size, word int) {
	if width, word = p.at(szipBits), 1; width == 32 || width == 64 {
		width, word = 8, width/8
	}
	return width, 1 << min(max(width-1, 0)/8, 2), word
}

// CheckSzip returns an error if some bytes may not be in the filter szip.
func (p Parameters) CheckSzip(n int) error {
	width, size, word := p.szipSample()
	block, line := p.at(szipBlock), p.at(szipLine)
	isCoded := width >= 1 && width <= maxSzipBits && block >= 1 && block <= maxSzipBlock && line >= 1
	if !isCoded || n%(size*word) != 0 {
		return unsupported("szip of %d bytes in samples of %d bits, in blocks of %d and lines of %d", n, p.at(szipBits),
			block, line)
	}
	return nil
}

// Szip undoes the filter szip. It keeps memory between calls.
func (p Parameters) Szip(dst, src []byte, memory *[]byte) error {
	if err := p.CheckSzip(len(dst)); err != nil {
		return err
	}
	width, size, word := p.szipSample()
	block, line := p.at(szipBlock), p.at(szipLine)
	if len(src) < szipHead || int64(binary.LittleEndian.Uint32(src)) != int64(len(dst)) {
		return broken("the size in front is not %d", len(dst))
	}
	out := dst
	if word > 1 {
		*memory = slices.Grow((*memory)[:0], len(dst))[:len(dst)]
		out = *memory
	}
	decoder := szipDecoder{bitReader: bitReader{src: src[szipHead:]}, width: width, id: 3 + (width-1)/8,
		differ: p.at(szipOptions)&szipDiffer != 0, blocks: (line + block - 1) / block}
	decoder.block = decoder.memory[:block]
	for len(out) > 0 {
		samples := min(line, len(out)/size)
		if !decoder.line(out[:samples*size], size) {
			return broken("%d samples of %d bits are not as szip codes them", len(dst)/size, width)
		}
		out = out[samples*size:]
	}
	switch {
	case word > 1:
		planes.Join(dst, *memory, word)
	case p.at(szipOptions)&szipBig != 0 && size > 1:
		kernel.SwapBytes(dst, size)
	}
	return nil
}

// line decodes a line. It reports false if the code is broken.
func (d *szipDecoder) line(dst []byte, size int) bool {
	d.zeros = 0
	last := uint32(0)
	for i := 0; len(dst) > 0; i++ {
		if !d.next(i, d.differ && i == 0) {
			return false
		}
		numbers := d.block[:min(len(d.block), len(dst)/size)]
		if d.differ {
			last = differences(numbers, last, d.width, i == 0)
		}
		dst = putSamples(dst, numbers, size)
	}
	return d.n >= d.past
}

// differences makes samples of numbers that say how each differs from the one before: in turns up and down, for as
// far as both are samples, and then in one direction.
func differences(numbers []uint32, last uint32, width int, first bool) uint32 {
	most := uint32(1)<<width - 1
	top := (width - 1) & 31
	if first {
		last, numbers = numbers[0], numbers[1:]
	}
	for i, n := range numbers {
		flip := -(last >> top) & most // turns around the samples if the last one is in their upper half
		made, near := n^flip, last+(n>>1^-(n&1))
		if (n+1)>>1 <= last^flip {
			made = near
		}
		numbers[i], last = made, made
	}
	return last
}

// putSamples writes samples, little-endian, and returns what is behind them.
func putSamples(dst []byte, samples []uint32, size int) []byte {
	switch size {
	case 1:
		for i, v := range samples {
			dst[i] = byte(v)
		}
	case 2:
		for i, v := range samples {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(v))
		}
	default:
		for i, v := range samples {
			binary.LittleEndian.PutUint32(dst[4*i:], v)
		}
	}
	return dst[len(samples)*size:]
}

// next reads the numbers of block i of a line, of which the first one may be stored as it is.
func (d *szipDecoder) next(i int, stored bool) bool {
	if d.zeros > 0 {
		d.zeros--
		clear(d.block)
		return true
	}
	id, whole, coded := int(d.bitReader.next(d.id)), 1<<d.id-1, d.block
	pairs := id == 0 && d.bitReader.next(1) == 1
	if stored && id != whole {
		coded[0], coded = uint32(d.bitReader.next(d.width)), coded[1:]
	}
	switch {
	case id == whole:
		clear(coded)
		d.low(coded, d.width)
	case pairs:
		d.pairs(len(d.block)-len(coded), coded)
	case id == 0:
		clear(coded)
		d.zeros = d.unary()
		switch rest := min(d.blocks-i, szipSegment-i%szipSegment); {
		case d.zeros == szipRest-1:
			d.zeros = rest - 1
		case d.zeros >= szipRest:
			d.zeros--
		}
		return d.zeros < d.blocks-i
	default:
		d.high(coded, id-1)
		d.low(coded, id-1)
	}
	return true
}

// high reads the bits of numbers above some low ones.
func (d *szipDecoder) high(coded []uint32, low int) {
	r := &d.bitReader
	buffer, n := r.bits, r.n // in registers
	for k := range coded {
		zeros := bits.LeadingZeros64(buffer)
		if zeros < n {
			buffer, n = buffer<<((zeros+1)&63), n-zeros-1
		} else {
			r.bits, r.n = buffer, n
			zeros = r.unary()
			buffer, n = r.bits, r.n
		}
		coded[k] = uint32(zeros) << low
	}
	r.bits, r.n = buffer, n
}

// low adds the low bits of numbers.
func (d *szipDecoder) low(coded []uint32, low int) {
	r := &d.bitReader
	buffer, n := r.bits, r.n // in registers
	for k := range coded {
		if n < low {
			r.bits, r.n = buffer, n
			r.fill()
			buffer, n = r.bits, r.n
		}
		coded[k] |= uint32(buffer >> 1 >> ((63 - low) & 63))
		buffer, n = buffer<<(low&63), n-low
	}
	r.bits, r.n = buffer, n
}

// pairs reads numbers two by two: a unary number counts all pairs (a, b) in the order of a+b, and then of b. skip is
// 1 if the first number of the first pair does not count.
func (d *szipDecoder) pairs(skip int, coded []uint32) {
	for k := -skip; k < len(coded); k += 2 {
		n, sum := d.unary(), 0
		for n > sum {
			sum++
			n -= sum
		}
		if k >= 0 {
			coded[k] = uint32(sum - n)
		}
		if k+1 < len(coded) {
			coded[k+1] = uint32(n)
		}
	}
}
