package moments

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/stats"
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

// isFloat reports whether the samples are float16 or bfloat16.
func (c *counted) isFloat() bool { return c.dtype == chunk.Float16 || c.dtype == chunk.BFloat16 }

func (c *counted) add(b []byte, nd *noData, _ *scratch) {
	var same [2]uint16 // the patterns of nodata
	var before [2]uint64
	n := 0
	if nd.on && !nd.nan {
		same[0], n = nd.bits, 1
		if c.isFloat() && nd.bits&0x7fff == 0 { // 0 and -0
			same, n = [2]uint16{0, 0x8000}, 2
		}
	}
	// Count all samples first and take nodata out afterwards: a test for each sample would
	// cost more.
	for i, pattern := range same[:n] {
		before[i] = c.counts[pattern]
	}
	switch {
	case c.dtype.Size() == 1:
		countBytes((*[256]uint64)(c.counts), b)
	case nd.on && nd.nan:
		c.addFloats(cast.Values[uint16](b))
	default:
		counts := (*[1 << 16]uint64)(c.counts) // an array needs no check of bounds
		for _, pattern := range cast.Values[uint16](b) {
			counts[pattern]++
		}
	}
	for i, pattern := range same[:n] {
		c.nodata += c.counts[pattern] - before[i]
		c.counts[pattern] = before[i]
	}
}

// addFloats counts floats whose nodata is NaN.
func (c *counted) addFloats(patterns []uint16) {
	inf := c.infinity()
	for _, pattern := range patterns {
		if pattern&0x7fff > inf {
			c.nodata++
		} else {
			c.counts[pattern]++
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
		four := b[i : i+4 : i+4] // one check of bounds
		counts[four[0]]++
		c1[four[1]]++
		c2[four[2]]++
		c3[four[3]]++
	}
	for _, v := range b[i:] {
		counts[v]++
	}
	for v := range counts {
		counts[v] += uint64(c1[v]) + uint64(c2[v]) + uint64(c3[v])
	}
}

func (c *counted) skip(n uint64) { c.nodata += n }

func (c *counted) samples() uint64 {
	total := c.nodata
	for _, n := range c.counts {
		total += n
	}
	return total
}

func (c *counted) merge(a accumulator) {
	other := a.(*counted)
	c.nodata += other.nodata
	for pattern, n := range other.counts {
		c.counts[pattern] += n
	}
}

func (c *counted) measure() known {
	band := stats.Band{NoData: c.nodata}
	sums := exactMoments{unit: 0}
	if c.isFloat() {
		sums.unit = -133 // bfloat16's smallest number; float16's is 2^-24
	}
	values := distribution{exact: true}
	for pattern, n := range c.counts {
		if n == 0 {
			continue
		}
		if magnitude := uint16(pattern) & 0x7fff; c.isFloat() && magnitude >= c.infinity() {
			if magnitude == c.infinity() {
				band.Inf += n
			} else {
				band.NaN += n
			}
			continue
		}
		v := c.dtype.Number([]byte{byte(pattern), byte(pattern >> 8)})
		mantissa, exponent := split(v)
		sums.add(n, big.NewInt(mantissa), uint(exponent-sums.unit))
		if v == 0 {
			v = 0 // -0 is 0
		}
		values.groups = append(values.groups, weighted{v, v, n})
	}
	if n := len(values.groups); !c.isFloat() && n > 0 && n <= maxClasses {
		band.Classes = make(map[int64]uint64, n)
		for _, g := range values.groups {
			band.Classes[int64(g.lo)] = g.n
		}
	}
	slices.SortFunc(values.groups, func(a, b weighted) int { return cmp.Compare(a.lo, b.lo) })
	return known{band: band, moments: sums, values: values}
}
