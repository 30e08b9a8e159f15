package moments

import (
	"math"
	"math/bits"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/stats"
)

// floats measures floats of 32 and 64 bits.
type floats struct {
	dtype    chunk.DType
	nodata   uint64
	nan, inf uint64
	// The sums of the values with each binary exponent, in units of that exponent's last place.
	// Sums by exponent are exact: the order of the values makes no difference.
	parts []wordSums
	hist[float64]
}

func newFloats(d chunk.DType) *floats {
	exponents := 1 << 8
	if d == chunk.Float64 {
		exponents = 1 << 11
	}
	bin := func(v float64, k int) int64 { return binsOf(k).of(v) }
	return &floats{dtype: d, parts: make([]wordSums, exponents), hist: hist[float64]{width: width, bin: bin}}
}

// unit returns the smallest positive number as a power of two.
func (a *floats) unit() int {
	if a.dtype == chunk.Float64 {
		return -1074
	}
	return -149
}

func (a *floats) add(b []byte, nd *noData, tmp *scratch) {
	kept := tmp.floats[:0]
	if a.dtype == chunk.Float32 {
		for _, v := range cast.Values[float32](b) {
			kept = append(kept, float64(v))
		}
	} else {
		kept = append(kept, cast.Values[float64](b)...)
	}
	kept = a.keep(kept, nd)
	if len(kept) == 0 {
		return
	}
	lo, hi := kept[0], kept[0]
	for _, v := range kept {
		lo, hi = min(lo, v), max(hi, v)
	}
	if a.dtype == chunk.Float32 {
		sum32(a.parts, kept)
	} else {
		sum64(a.parts, kept)
	}
	a.extend(lo+0, hi+0)
	a.n += uint64(len(kept))
	if counts, base := a.hist.counts, a.hist.base; counts != nil {
		bins := binsOf(a.hist.k)
		for _, v := range kept {
			counts[bins.of(v)-base]++
		}
	}
}

// keep returns the finite values that are not nodata, in place, and counts the others.
func (a *floats) keep(values []float64, nd *noData) []float64 {
	kept := values[:0]
	for _, v := range values {
		switch {
		case v != v:
			if nd.on && nd.nan {
				a.nodata++
			} else {
				a.nan++
			}
		case nd.on && (v == nd.float || v == nd.other) && !nd.nan:
			a.nodata++
		case v-v != 0:
			a.inf++
		default:
			kept = append(kept, v)
		}
	}
	return kept
}

// sum32 adds values that are float32s.
func sum32(parts []wordSums, values []float64) {
	for _, v := range values {
		bits32 := math.Float32bits(float32(v))
		exponent := bits32 >> 23 & 0xff
		mantissa := int64(bits32 & (1<<23 - 1))
		if exponent > 0 {
			mantissa |= 1 << 23
		}
		part := &parts[exponent]
		square := uint64(mantissa * mantissa)
		mantissa ^= -int64(bits32 >> 31) // negated with the line below
		mantissa += int64(bits32 >> 31)
		part.addSum(uint64(mantissa), uint64(mantissa>>63))
		var carry uint64
		part.squares[0], carry = bits.Add64(part.squares[0], square, 0)
		part.squares[1] += carry // 2^48 · 2^64 values do not reach the third word
	}
}

// sum64 adds values that are float64s.
func sum64(parts []wordSums, values []float64) {
	for _, v := range values {
		bits64 := math.Float64bits(v)
		exponent := bits64 >> 52 & 0x7ff
		mantissa := int64(bits64 & (1<<52 - 1))
		if exponent > 0 {
			mantissa |= 1 << 52
		}
		if bits64>>63 == 1 {
			mantissa = -mantissa
		}
		parts[exponent].add(mantissa)
	}
}

// powerBins are bins of width 2^k, which is one divided by the product of two factors: one alone may overflow.
type powerBins struct{ factor, further float64 }

func binsOf(k int) powerBins {
	if k < -1000 {
		return powerBins{0x1p1000, math.Ldexp(1, -k-1000)}
	}
	return powerBins{math.Ldexp(1, -k), 1}
}

// of returns the number of the bin that holds v: floor(v·2^-k).
func (b powerBins) of(v float64) int64 {
	scaled := v * b.factor * b.further // by a power of two: exact, or so small that it rounds towards 0
	bin := int64(scaled)
	if float64(bin) > scaled || bin == 0 && v < 0 {
		bin--
	}
	return bin
}

// width returns the smallest k at which the values from lo to hi take at most histBins bins of width
// 2^k, and whose bins have numbers of at most 53 bits.
func width(lo, hi float64) int {
	_, exponent := math.Frexp(max(math.Abs(lo), math.Abs(hi))) // both are below 2^exponent
	for k := max(exponent-53, -1074); ; k++ {
		if bins := binsOf(k); bins.of(hi)-bins.of(lo) < histBins {
			return k
		}
	}
}

func (a *floats) skip(n uint64) { a.nodata += n }

func (a *floats) samples() uint64 { return a.n + a.nodata + a.nan + a.inf }

func (a *floats) merge(acc accumulator) {
	other := acc.(*floats)
	a.nodata += other.nodata
	a.nan += other.nan
	a.inf += other.inf
	a.hist.merge(&other.hist)
	for exponent := range other.parts {
		a.parts[exponent].merge(&other.parts[exponent])
	}
}

// moments puts the sums of all exponents together.
func (a *floats) moments() *exactMoments {
	total := &exactMoments{n: a.n, unit: a.unit()}
	for exponent := range a.parts {
		part := &a.parts[exponent]
		if *part == (wordSums{}) {
			continue
		}
		shift := uint(max(exponent, 1) - 1) // numbers of exponent 0 are in the unit of exponent 1
		sum, squares := part.big()
		total.sum.Add(&total.sum, sum.Lsh(&sum, shift))
		total.squares.Add(&total.squares, squares.Lsh(&squares, 2*shift))
	}
	return total
}

func (a *floats) measure() known {
	band := stats.Band{NoData: a.nodata, NaN: a.nan, Inf: a.inf}
	values := distribution{min: a.min, max: a.max}
	a.hist.each(func(bin int64, n uint64) {
		lo, hi := math.Ldexp(float64(bin), a.hist.k), math.Ldexp(float64(bin)+1, a.hist.k)
		values.groups = append(values.groups, weighted{lo, hi, n})
	})
	if a.hist.counts == nil {
		values.groups = []weighted{{a.min, a.min, a.n}}
		values.exact = true
	}
	return known{band: band, moments: *a.moments(), values: values}
}
