package stats

import (
	"math"
	"math/bits"

	"github.com/chaski-eo/chaski/chunk"
)

// floats measures floats of 32 and 64 bits.
type floats struct {
	dtype    chunk.DType
	n        uint64
	nodata   uint64
	nan, inf uint64
	min, max float64
	// The sums of the values with each binary exponent, in units of that exponent's last place.
	// Sums by exponent need no rounding, so that the order of the values does not matter.
	parts []part
	hist  hist
}

// part sums the mantissas of one exponent, and their squares, exactly.
type part struct {
	sum     [2]uint64 // two's complement
	squares [3]uint64
}

func newFloats(d chunk.DType) *floats {
	n := 1 << 8
	if d == chunk.Float64 {
		n = 1 << 11
	}
	return &floats{dtype: d, parts: make([]part, n)}
}

// unit returns the smallest positive number as a power of two.
func (a *floats) unit() int {
	if a.dtype == chunk.Float64 {
		return -1074
	}
	return -149
}

func (a *floats) add(b []byte, nd *noData, tmp *scratch) {
	kept := tmp.float[:0]
	if a.dtype == chunk.Float32 {
		for _, u := range load[uint32](b, tmp) {
			kept = append(kept, float64(math.Float32frombits(u)))
		}
	} else {
		for _, u := range load[uint64](b, tmp) {
			kept = append(kept, math.Float64frombits(u))
		}
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
	if a.hist.counts != nil {
		s1, s2 := scales(a.hist.k)
		countFloats(a.hist.counts, kept, s1, s2, a.hist.base)
	}
}

// keep returns the finite values that are not nodata, in place, and counts the others.
func (a *floats) keep(s []float64, nd *noData) []float64 {
	kept := s[:0]
	for _, v := range s {
		switch {
		case v != v:
			if nd.on && nd.nan {
				a.nodata++
			} else {
				a.nan++
			}
		case nd.on && v == nd.float && !nd.nan:
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
func sum32(parts []part, s []float64) {
	for _, v := range s {
		u := math.Float32bits(float32(v))
		e := u >> 23 & 0xff
		m := int64(u & (1<<23 - 1))
		if e > 0 {
			m |= 1 << 23
		}
		part := &parts[e]
		q := uint64(m * m)
		m ^= -int64(u >> 31) // negated with the line below
		m += int64(u >> 31)
		var c uint64
		part.sum[0], c = bits.Add64(part.sum[0], uint64(m), 0)
		part.sum[1] += uint64(m>>63) + c
		part.squares[0], c = bits.Add64(part.squares[0], q, 0)
		part.squares[1] += c // 2^48 · 2^64 values do not reach the third word
	}
}

// sum64 adds values that are float64s.
func sum64(parts []part, s []float64) {
	for _, v := range s {
		u := math.Float64bits(v)
		e := u >> 52 & 0x7ff
		m := int64(u & (1<<52 - 1))
		if e > 0 {
			m |= 1 << 52
		}
		part := &parts[e]
		h, l := bits.Mul64(uint64(m), uint64(m))
		if u>>63 == 1 {
			m = -m
		}
		var c uint64
		part.sum[0], c = bits.Add64(part.sum[0], uint64(m), 0)
		part.sum[1] += uint64(m>>63) + c
		part.squares[0], c = bits.Add64(part.squares[0], l, 0)
		part.squares[1], c = bits.Add64(part.squares[1], h, c)
		part.squares[2] += c
	}
}

// scales returns two factors whose product is 2^-k; neither overflows.
func scales(k int) (s1, s2 float64) {
	if k < -1000 {
		return 0x1p1000, math.Ldexp(1, -k-1000)
	}
	return math.Ldexp(1, -k), 1
}

// binOf returns floor(v·2^-k), where scales(k) gave s1 and s2.
func binOf(v, s1, s2 float64) int64 {
	t := v * s1 * s2 // a power of two: exact, or so small that it rounds towards 0
	i := int64(t)
	if float64(i) > t || i == 0 && v < 0 {
		i--
	}
	return i
}

// countFloats needs the bin of every value to lie in base … base+len(counts)-1.
func countFloats(counts []uint64, s []float64, s1, s2 float64, base int64) {
	for _, v := range s {
		counts[binOf(v, s1, s2)-base]++
	}
}

// width returns the smallest k at which the values from lo to hi take at most histBins bins of width
// 2^k, and whose bins have numbers of at most 53 bits.
func width(lo, hi float64) int {
	_, e := math.Frexp(max(math.Abs(lo), math.Abs(hi))) // below 2^e
	for k := max(e-53, -1074); ; k++ {
		s1, s2 := scales(k)
		if binOf(hi, s1, s2)-binOf(lo, s1, s2) < histBins {
			return k
		}
	}
}

func (a *floats) extend(lo, hi float64) {
	if a.n > 0 {
		if a.min <= lo && hi <= a.max {
			return
		}
		lo, hi = min(lo, a.min), max(hi, a.max)
	}
	if lo != hi {
		k := width(lo, hi)
		s1, s2 := scales(k)
		a.hist.fit(k, binOf(lo, s1, s2), binOf(hi, s1, s2), a.n, binOf(a.min, s1, s2))
	}
	a.min, a.max = lo, hi
}

func (a *floats) skip(n uint64) { a.nodata += n }

func (a *floats) samples() uint64 { return a.n + a.nodata + a.nan + a.inf }

func (a *floats) merge(acc accumulator) {
	o := acc.(*floats)
	a.nodata += o.nodata
	a.nan += o.nan
	a.inf += o.inf
	if o.n == 0 {
		return
	}
	a.extend(o.min, o.max)
	a.n += o.n
	s1, s2 := scales(a.hist.k)
	a.hist.merge(&o.hist, o.n, binOf(o.min, s1, s2))
	for i := range o.parts {
		part, q := &a.parts[i], &o.parts[i]
		var c uint64
		part.sum[0], c = bits.Add64(part.sum[0], q.sum[0], 0)
		part.sum[1] += q.sum[1] + c
		part.squares[0], c = bits.Add64(part.squares[0], q.squares[0], 0)
		part.squares[1], c = bits.Add64(part.squares[1], q.squares[1], c)
		part.squares[2] += q.squares[2] + c
	}
}

// moments puts the sums of all exponents together.
func (a *floats) moments() *moments {
	m := &moments{n: a.n, unit: a.unit()}
	for e := range a.parts {
		p := &a.parts[e]
		if *p == (part{}) {
			continue
		}
		shift := uint(max(e, 1) - 1)
		sum, squares := bigOf(p.sum[:], true), bigOf(p.squares[:], false)
		m.sum.Add(&m.sum, sum.Lsh(sum, shift))
		m.squares.Add(&m.squares, squares.Lsh(squares, 2*shift))
	}
	return m
}

func (a *floats) report() Band {
	band := Band{NoData: a.nodata, NaN: a.nan, Inf: a.inf}
	moments := a.moments()
	var d distribution
	if a.n > 0 {
		d.min, d.max = a.min, a.max
		a.hist.each(func(i int64, n uint64) {
			d.values = append(d.values, weighted{math.Ldexp(float64(i), a.hist.k),
				math.Ldexp(float64(i)+1, a.hist.k), n})
		})
		if a.hist.counts == nil {
			d.values = []weighted{{a.min, a.min, a.n}}
			d.exact = true
		}
	}
	band.fill(moments, &d)
	return band
}
