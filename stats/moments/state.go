package moments

import (
	"encoding/binary"
	"math"
	"math/big"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cursor"
)

// A state is a Field as bytes, so parts of a dataset can be measured in different processes and
// merged. Numbers are base-128 varints unless said otherwise, z marks a zigzag one; fixed numbers are
// little-endian, varints as short as can be. Version 1:
//
//	4 bytes  magic "CHKS"
//	u8       version, 1
//	u8       dtype, by the constants of package chunk
//	         bands; then for each band:
//	         nodata
//
//	types of 8 and 16 bits
//	         counts: their number, then for each value that occurs
//	         the step from the bit pattern before (at first from -1), and its count
//
//	integers of 32 and 64 bits
//	         n; if it is not 0: z min, z max (of uint64 less 2^63),
//	         16 bytes sum, 24 bytes sum of squares, and if min is not max the bins
//
//	floats of 32 and 64 bits
//	         nan, inf, n; if n is not 0: 8 bytes min, 8 bytes max (as float64),
//	         the number of exponents that occur, for each the step from the one before (at
//	         first from -1), 16 bytes sum, 24 bytes sum of squares; if min is not max the bins
//
//	bins     as counts, at first from the bin before the bin of min; their width follows from min and max
const (
	stateMagic   = "CHKS"
	stateVersion = 1

	// maxState limits the memory of a parsed state, in bytes, because a few bytes may claim many
	// bands: a band of 16 bits takes 512 KiB however few values it has.
	maxState = 1 << 30
	// maxCount limits the samples of each kind of a band in a state: four kinds are far less than maxMerged.
	maxCount = 1 << 56
	// maxMerged limits the samples of a band that others are merged into. Their sum fits 128 bits, with a sign, and
	// the sum of their squares 192: 62 bits of samples of 64 bits, or of 128.
	maxMerged = 1 << 62
)

// AppendState appends the state to dst. The nodata value is not part of it.
func (f *Field) AppendState(dst []byte) []byte {
	dst = append(dst, stateMagic...)
	dst = append(dst, stateVersion, byte(f.dtype))
	coder := stateCoder{out: binary.AppendUvarint(dst, uint64(len(f.bands)))}
	for _, b := range f.bands {
		b.state(&coder)
	}
	return coder.out
}

// ParseStates reads the states of several fields, which together may take 1 GiB of memory. Errors are Corrupt,
// Unsupported (a later version) or Limit. The states are not kept.
func ParseStates(states [][]byte) ([]*Field, error) {
	fields := make([]*Field, len(states))
	left := uint64(maxState)
	for i, b := range states {
		field, size, err := parseState(b, left)
		if err != nil {
			return nil, err
		}
		fields[i] = field
		left -= size
	}
	return fields, nil
}

// parseState reads the state of a field that takes at most most bytes of memory, and returns how many it takes.
func parseState(b []byte, most uint64) (f *Field, size uint64, err error) {
	parser := &cursor.Cursor{B: b, Part: "state"}
	if v := parser.Magic(stateMagic, "a state of statistics"); parser.Err == nil && v != stateVersion {
		parser.Fail(fault.Unsupported, "version %d", v)
	}
	dtype := chunk.DType(parser.U8())
	bands := parser.Uvarint()
	perBand := uint64(histBins*8 + 2048*40)
	if dtype.Size() <= 2 {
		perBand = 8 << (8 * dtype.Size())
	}
	if parser.Err == nil && bands > most/perBand {
		parser.Fail(fault.Limit, "%d bands of %s", bands, dtype)
	}
	if parser.Err == nil && bands > uint64(len(b)) {
		parser.Fail(fault.Corrupt, "%d bands in %d bytes", bands, len(b))
	}
	if parser.Err != nil {
		return nil, 0, parser.Err
	}
	if f, err = NewField(dtype, int(bands)); err != nil {
		return nil, 0, fault.WrapAt(fault.Corrupt, "state", int64(parser.At), err)
	}
	for _, band := range f.bands {
		band.state(&stateCoder{in: parser})
	}
	parser.End()
	if parser.Err != nil {
		return nil, 0, parser.Err
	}
	return f, bands * perBand, nil
}

// stateCoder writes a state or, with in, reads one: what an accumulator has in a state is said once.
type stateCoder struct {
	out []byte
	in  *cursor.Cursor
}

// good reports whether a state is read, so far without an error: then its numbers need checks.
func (c *stateCoder) good() bool { return c.in != nil && c.in.Err == nil }

// number codes a number.
func (c *stateCoder) number(v *uint64) {
	if c.in != nil {
		*v = c.in.Uvarint()
	} else {
		c.out = binary.AppendUvarint(c.out, *v)
	}
}

// signed codes a number that may be negative.
func (c *stateCoder) signed(v *int64) {
	bits := uint64(*v)<<1 ^ uint64(*v>>63) // zigzag
	if c.number(&bits); c.in != nil {
		*v = cursor.Unzigzag(bits)
	}
}

// samples codes a number of samples.
func (c *stateCoder) samples(n *uint64) {
	if c.number(n); *n > maxCount && c.in != nil {
		c.in.Fail(fault.Limit, "%d samples, at most %d", *n, uint64(maxCount))
		*n = 0
	}
}

// words codes fixed numbers.
func (c *stateCoder) words(words []uint64) {
	for i := range words {
		if c.in != nil {
			words[i] = c.in.U64()
		} else {
			c.out = binary.LittleEndian.AppendUint64(c.out, words[i])
		}
	}
}

func (c *stateCoder) sums(s *wordSums) {
	c.words(s.sum[:])
	c.words(s.squares[:])
}

// some codes the elements, of n, that are not empty: how many they are and, for each, the step from the one before and
// what code does. The first step is from the one before number first.
func (c *stateCoder) some(n, first int, empty func(i int) bool, code func(i int)) {
	last := first - 1
	if c.in != nil {
		for left := c.in.Uvarint(); left > 0 && c.in.Err == nil; left-- {
			step := c.in.Uvarint()
			if c.in.Err == nil && (step == 0 || step > uint64(n-1-last)) {
				c.in.Fail(fault.Corrupt, "a step of %d from %d", step, last)
			}
			if c.in.Err == nil {
				last += int(step)
				code(last)
			}
		}
		return
	}
	var occur []int
	for i := range n {
		if !empty(i) {
			occur = append(occur, i)
		}
	}
	c.out = binary.AppendUvarint(c.out, uint64(len(occur)))
	for _, i := range occur {
		c.out = binary.AppendUvarint(c.out, uint64(i-last))
		code(i)
		last = i
	}
}

// counts codes the counts that are not 0. Of counts that are read, it returns the sum, and the first and last that is
// not 0.
func (c *stateCoder) counts(counts []uint64, first int) (sum uint64, lo, hi int) {
	lo = -1
	c.some(len(counts), first, func(i int) bool { return counts[i] == 0 }, func(i int) {
		c.samples(&counts[i])
		if sum += counts[i]; c.good() && (counts[i] == 0 || sum > maxCount) {
			c.in.Fail(fault.Corrupt, "a count of %d at %d", counts[i], i)
		}
		if hi = i; lo < 0 {
			lo = i
		}
	})
	return sum, lo, hi
}

func (c *counted) state(s *stateCoder) {
	s.samples(&c.nodata)
	s.counts(c.counts, 0)
}

func (a *integers) state(s *stateCoder) {
	s.samples(&a.nodata)
	if s.samples(&a.n); a.n == 0 {
		return
	}
	s.signed(&a.min)
	s.signed(&a.max)
	s.sums(&a.wordSums)
	if lo, hi := keyRange(a.dtype); s.good() && (a.min > a.max || a.min < lo || a.max > hi) {
		s.in.Fail(fault.Corrupt, "the range %d to %d", a.min, a.max)
	}
	a.bins(s)
	if s.good() {
		sum, squares := a.big()
		s.checkSums(a.n, &sum, &squares, big.NewInt(a.min), big.NewInt(a.max))
	}
}

// keyRange returns the smallest and the largest key of an integer type.
func keyRange(d chunk.DType) (lo, hi int64) {
	switch d {
	case chunk.Int32:
		return math.MinInt32, math.MaxInt32
	case chunk.Uint32:
		return 0, math.MaxUint32
	}
	return math.MinInt64, math.MaxInt64
}

func (a *floats) state(s *stateCoder) {
	for _, n := range []*uint64{&a.nodata, &a.nan, &a.inf, &a.n} {
		s.samples(n)
	}
	if a.n == 0 {
		return
	}
	ends := [...]uint64{math.Float64bits(a.min), math.Float64bits(a.max)}
	s.words(ends[:])
	a.min, a.max = math.Float64frombits(ends[0]), math.Float64frombits(ends[1])
	finite := !math.IsInf(a.min, 0) && !math.IsInf(a.max, 0)
	// NaN is in no order: ask for the order, not for its opposite.
	ordered := a.min <= a.max && finite
	inexact := a.dtype == chunk.Float32 && (float64(float32(a.min)) != a.min || float64(float32(a.max)) != a.max)
	if s.good() && (!ordered || inexact) {
		s.in.Fail(fault.Corrupt, "the range %g to %g", a.min, a.max)
	}
	s.some(len(a.parts)-1, 0, func(i int) bool { return a.parts[i] == wordSums{} }, // the last exponent is NaN's
		func(i int) { s.sums(&a.parts[i]) })
	a.bins(s)
	if s.good() {
		moments := a.moments()
		inUnits := func(v float64) *big.Int { return scaled(new(big.Rat).SetFloat64(v), -moments.unit).Num() }
		s.checkSums(a.n, &moments.sum, &moments.squares, inUnits(a.min), inUnits(a.max))
	}
}

// checkSums checks that n numbers from lo to hi can have these sums.
func (c *stateCoder) checkSums(n uint64, sum, squares, lo, hi *big.Int) {
	count := new(big.Int).SetUint64(n)
	least, last := new(big.Int).Mul(count, lo), new(big.Int).Mul(count, hi)
	spread := new(big.Int).Mul(count, squares)
	spread.Sub(spread, new(big.Int).Mul(sum, sum))
	if sum.Cmp(least) < 0 || sum.Cmp(last) > 0 || spread.Sign() < 0 {
		c.in.Fail(fault.Corrupt, "sums that %d samples of this range cannot have", n)
	}
}
