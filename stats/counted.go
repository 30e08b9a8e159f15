package stats

import (
	"math/big"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// counted counts each value of a type of 8 or 16 bits.
type counted struct {
	dtype  chunk.DType
	counts []uint64 // by bit pattern
	nodata uint64
}

func newCounted(d chunk.DType) *counted {
	return &counted{dtype: d, counts: make([]uint64, 1<<(8*d.Size()))}
}

func (c *counted) add(b []byte, nd *noData, tmp *scratch) {
	float := c.dtype == chunk.Float16 || c.dtype == chunk.BFloat16
	var same [2]uint16 // the patterns of nodata
	var before [2]uint64
	n := 0
	if nd.on && !nd.nan {
		same[0], n = nd.bits, 1
		if float && nd.bits&0x7fff == 0 { // 0 and -0
			same, n = [2]uint16{0, 0x8000}, 2
		}
	}
	// Count all samples first and take nodata out afterwards: a test for each sample would
	// cost more.
	for i, p := range same[:n] {
		before[i] = c.counts[p]
	}
	switch {
	case c.dtype.Size() == 1:
		countBytes((*[256]uint64)(c.counts), b)
	case nd.on && nd.nan:
		c.addFloats(load[uint16](b, tmp))
	default:
		countWords((*[1 << 16]uint64)(c.counts), load[uint16](b, tmp))
	}
	for i, p := range same[:n] {
		c.nodata += c.counts[p] - before[i]
		c.counts[p] = before[i]
	}
}

// addFloats counts floats whose nodata is NaN.
func (c *counted) addFloats(s []uint16) {
	inf := c.infinity()
	for _, v := range s {
		if v&0x7fff > inf {
			c.nodata++
		} else {
			c.counts[v]++
		}
	}
}

// infinity returns the bits of the type's infinity.
func (c *counted) infinity() uint16 {
	if c.dtype == chunk.BFloat16 {
		return 0x7f80
	}
	return 0x7c00
}

// countBytes adds one to the count of every byte of b.
func countBytes(counts *[256]uint64, b []byte) {
	if len(b) < 1024 {
		for _, v := range b {
			counts[v]++
		}
		return
	}
	// Neighbours are often equal, and a count that was just stored is slow to load again. Four
	// tables avoid the wait.
	var c1, c2, c3 [256]uint16 // blocks are shorter than 4·65535
	i := 0
	for ; i+4 <= len(b); i += 4 {
		q := b[i : i+4 : i+4]
		counts[q[0]]++
		c1[q[1]]++
		c2[q[2]]++
		c3[q[3]]++
	}
	for _, v := range b[i:] {
		counts[v]++
	}
	for v := range counts {
		counts[v] += uint64(c1[v]) + uint64(c2[v]) + uint64(c3[v])
	}
}

// countWords adds one to the count of every number of s.
func countWords(counts *[1 << 16]uint64, s []uint16) {
	for _, v := range s {
		counts[v]++
	}
}

func (c *counted) skip(n uint64) { c.nodata += n }

func (c *counted) samples() uint64 {
	n := c.nodata
	for _, m := range c.counts {
		n += m
	}
	return n
}

func (c *counted) merge(a accumulator) {
	o := a.(*counted)
	c.nodata += o.nodata
	for i, n := range o.counts {
		c.counts[i] += n
	}
}

// value returns the number that a bit pattern stands for.
func (c *counted) value(p int) float64 {
	switch c.dtype {
	case chunk.Int8:
		return float64(int8(p))
	case chunk.Int16:
		return float64(int16(p))
	case chunk.Float16:
		return float64(kernel.Float32FromFloat16(uint16(p)))
	case chunk.BFloat16:
		return float64(kernel.Float32FromBFloat16(uint16(p)))
	}
	return float64(p)
}

func (c *counted) report() Band {
	band := Band{NoData: c.nodata}
	float := c.dtype == chunk.Float16 || c.dtype == chunk.BFloat16
	m := moments{unit: 0}
	if float {
		m.unit = -133 // bfloat16's smallest number; float16's is 2^-24
	}
	var d distribution
	for p, n := range c.counts {
		if n == 0 {
			continue
		}
		if float && uint16(p)&0x7fff >= c.infinity() {
			if uint16(p)&0x7fff == c.infinity() {
				band.Inf += n
			} else {
				band.NaN += n
			}
			continue
		}
		v := c.value(p)
		mant, exp := split(v)
		m.add(n, big.NewInt(mant), uint(exp-m.unit))
		if v == 0 {
			v = 0 // -0 is 0
		}
		d.values = append(d.values, weighted{v, v, n})
	}
	slices.SortFunc(d.values, weighted.compare)
	d.exact = true
	band.fill(&m, &d)
	return band
}
