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
	dst = binary.AppendUvarint(dst, uint64(len(f.bands)))
	for _, b := range f.bands {
		dst = b.appendState(dst)
	}
	return dst
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
	parser := stateParser{cursor.Cursor{B: b, Part: "state"}}
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
		return nil, 0, fault.Wrap(fault.Corrupt, "state", int64(parser.At), err)
	}
	for i := range f.bands {
		f.bands[i].parseState(&parser)
	}
	parser.End()
	if parser.Err != nil {
		return nil, 0, parser.Err
	}
	return f, bands * perBand, nil
}

// appendCounts appends the counts that are not 0. The first step is from the one before number first.
func appendCounts(dst []byte, counts []uint64, first int) []byte {
	occur := uint64(0)
	for _, count := range counts {
		if count > 0 {
			occur++
		}
	}
	dst = binary.AppendUvarint(dst, occur)
	last := first - 1
	for i, count := range counts {
		if count > 0 {
			dst = binary.AppendUvarint(dst, uint64(i-last))
			dst = binary.AppendUvarint(dst, count)
			last = i
		}
	}
	return dst
}

func appendWords(dst []byte, words ...uint64) []byte {
	for _, w := range words {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return dst
}

func (s *wordSums) appendState(dst []byte) []byte {
	return appendWords(appendWords(dst, s.sum[:]...), s.squares[:]...)
}

func (s *wordSums) parseState(p *stateParser) {
	p.words(s.sum[:])
	p.words(s.squares[:])
}

func (c *counted) appendState(dst []byte) []byte {
	return appendCounts(binary.AppendUvarint(dst, c.nodata), c.counts, 0)
}

func (a *integers) appendState(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, a.nodata)
	dst = binary.AppendUvarint(dst, a.n)
	if a.n == 0 {
		return dst
	}
	dst = binary.AppendVarint(binary.AppendVarint(dst, a.min), a.max)
	return a.appendBins(a.wordSums.appendState(dst))
}

func (a *floats) appendState(dst []byte) []byte {
	for _, v := range [...]uint64{a.nodata, a.nan, a.inf, a.n} {
		dst = binary.AppendUvarint(dst, v)
	}
	if a.n == 0 {
		return dst
	}
	dst = appendWords(dst, math.Float64bits(a.min), math.Float64bits(a.max))
	occur := uint64(0)
	for i := range a.parts {
		if a.parts[i] != (wordSums{}) {
			occur++
		}
	}
	dst = binary.AppendUvarint(dst, occur)
	last := -1
	for i := range a.parts {
		if part := &a.parts[i]; *part != (wordSums{}) {
			dst = part.appendState(binary.AppendUvarint(dst, uint64(i-last)))
			last = i
		}
	}
	return a.appendBins(dst)
}

// stateParser reads a state from front to back.
type stateParser struct{ cursor.Cursor }

// count reads a number of samples.
func (p *stateParser) count() uint64 {
	samples := p.Uvarint()
	if samples > maxCount {
		p.Fail(fault.Limit, "%d samples, at most %d", samples, uint64(maxCount))
		return 0
	}
	return samples
}

func (p *stateParser) words(to []uint64) {
	data := p.Bytes(8 * len(to))
	for i := range to {
		if data != nil {
			to[i] = binary.LittleEndian.Uint64(data[8*i:])
		}
	}
}

// counts reads counts into to, and returns their sum and the first and last that is not 0.
func (p *stateParser) counts(to []uint64, first int) (sum uint64, lo, hi int) {
	pos, lo := first-1, -1
	for left := p.Uvarint(); left > 0 && p.Err == nil; left-- {
		step, n := p.Uvarint(), p.count()
		ahead := 0 < step && step <= uint64(len(to)-1-pos)
		if p.Err == nil && (!ahead || n == 0 || sum+n > maxCount) {
			p.Fail(fault.Corrupt, "a step of %d from %d, a count of %d", step, pos, n)
		}
		if p.Err != nil {
			break
		}
		pos += int(step)
		to[pos] = n
		sum += n
		if lo < 0 {
			lo = pos
		}
		hi = pos
	}
	return sum, lo, hi
}

func (c *counted) parseState(p *stateParser) {
	c.nodata = p.count()
	p.counts(c.counts, 0)
}

func (a *integers) parseState(p *stateParser) {
	a.nodata, a.n = p.count(), p.count()
	if a.n == 0 {
		return
	}
	a.min, a.max = p.Varint(), p.Varint()
	a.wordSums.parseState(p)
	lo, hi := keyRange(a.dtype)
	if p.Err == nil && (a.min > a.max || a.min < lo || a.max > hi) {
		p.Fail(fault.Corrupt, "the range %d to %d", a.min, a.max)
	}
	a.parseBins(p)
	sum, squares := a.big()
	p.checkSums(a.n, &sum, &squares, big.NewInt(a.min), big.NewInt(a.max))
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

func (a *floats) parseState(p *stateParser) {
	a.nodata, a.nan, a.inf, a.n = p.count(), p.count(), p.count(), p.count()
	if a.n == 0 {
		return
	}
	var ends [2]uint64
	p.words(ends[:])
	a.min, a.max = math.Float64frombits(ends[0]), math.Float64frombits(ends[1])
	finite := !math.IsInf(a.min, 0) && !math.IsInf(a.max, 0)
	// NaN is in no order: ask for the order, not for its opposite.
	ordered := a.min <= a.max && finite
	inexact := a.dtype == chunk.Float32 && (float64(float32(a.min)) != a.min || float64(float32(a.max)) != a.max)
	if p.Err == nil && !ordered || inexact {
		p.Fail(fault.Corrupt, "the range %g to %g", a.min, a.max)
	}
	pos := -1
	for left := p.Uvarint(); left > 0 && p.Err == nil; left-- {
		step := p.Uvarint()
		if step == 0 || step > uint64(len(a.parts)-2-pos) { // the last exponent is NaN's
			p.Fail(fault.Corrupt, "a step of %d exponents from %d", step, pos)
			return
		}
		pos += int(step)
		a.parts[pos].parseState(p)
	}
	a.parseBins(p)
	if p.Err == nil {
		moments := a.moments()
		inUnits := func(v float64) *big.Int { return scaled(new(big.Rat).SetFloat64(v), -moments.unit).Num() }
		p.checkSums(a.n, &moments.sum, &moments.squares, inUnits(a.min), inUnits(a.max))
	}
}

// checkSums checks that n numbers from lo to hi can have these sums.
func (p *stateParser) checkSums(n uint64, sum, squares, lo, hi *big.Int) {
	if p.Err != nil {
		return
	}
	count := new(big.Int).SetUint64(n)
	least, last := new(big.Int).Mul(count, lo), new(big.Int).Mul(count, hi)
	spread := new(big.Int).Mul(count, squares)
	spread.Sub(spread, new(big.Int).Mul(sum, sum))
	if sum.Cmp(least) < 0 || sum.Cmp(last) > 0 || spread.Sign() < 0 {
		p.Fail(fault.Corrupt, "sums that %d samples of this range cannot have", n)
	}
}
