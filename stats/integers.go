package stats

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/chaski-eo/chaski/chunk"
)

// integers measures integers of 32 and 64 bits. It works on keys, int64 numbers in the order of the
// values: the values themselves, or value-2^63 for uint64.
type integers struct {
	dtype    chunk.DType
	n        uint64
	nodata   uint64
	min, max int64
	sum      [2]uint64 // of the keys, two's complement, least significant first
	squares  [3]uint64 // of the keys
	hist     hist
}

func keyOf(d chunk.DType, u uint64) int64 {
	switch d {
	case chunk.Uint64:
		return int64(u ^ 1<<63)
	case chunk.Int32:
		return int64(int32(u))
	case chunk.Uint32:
		return int64(uint32(u))
	}
	return int64(u)
}

func (a *integers) add(b []byte, nd *noData, tmp *scratch) {
	keys := tmp.ints[:0]
	switch a.dtype {
	case chunk.Int32:
		for _, v := range load[uint32](b, tmp) {
			keys = append(keys, int64(int32(v)))
		}
	case chunk.Uint32:
		for _, v := range load[uint32](b, tmp) {
			keys = append(keys, int64(v))
		}
	case chunk.Uint64:
		for _, v := range load[uint64](b, tmp) {
			keys = append(keys, int64(v^1<<63))
		}
	default:
		for _, v := range load[uint64](b, tmp) {
			keys = append(keys, int64(v))
		}
	}
	if nd.on {
		kept := keys[:0]
		for _, k := range keys {
			if k != nd.key {
				kept = append(kept, k)
			}
		}
		a.nodata += uint64(len(keys) - len(kept))
		keys = kept
	}
	if len(keys) == 0 {
		return
	}
	lo, hi := keys[0], keys[0]
	for _, k := range keys {
		lo, hi = min(lo, k), max(hi, k)
		a.addSum(uint64(k), uint64(k>>63))
		m := uint64(k)
		if k < 0 {
			m = -m
		}
		h, l := bits.Mul64(m, m)
		a.addSquare(l, h, 0)
	}
	a.extend(lo, hi)
	a.n += uint64(len(keys))
	if a.hist.counts != nil {
		countInts(a.hist.counts, keys, a.hist.k, a.hist.base)
	}
}

// countInts counts keys. Every k>>shift must lie in base … base+len(counts)-1.
func countInts(counts []uint64, keys []int64, shift int, base int64) {
	for _, k := range keys {
		counts[k>>shift-base]++
	}
}

func (a *integers) addSum(lo, hi uint64) {
	var c uint64
	a.sum[0], c = bits.Add64(a.sum[0], lo, 0)
	a.sum[1], _ = bits.Add64(a.sum[1], hi, c)
}

func (a *integers) addSquare(q0, q1, q2 uint64) {
	var c uint64
	a.squares[0], c = bits.Add64(a.squares[0], q0, 0)
	a.squares[1], c = bits.Add64(a.squares[1], q1, c)
	a.squares[2], _ = bits.Add64(a.squares[2], q2, c)
}

// intWidth returns the smallest k at which the keys from lo to hi take at most histBins bins of width 2^k.
func intWidth(lo, hi int64) (k int) {
	for uint64(hi>>k)-uint64(lo>>k) >= histBins {
		k++
	}
	return k
}

// extend extends the range to lo and hi, and the bins to the range.
func (a *integers) extend(lo, hi int64) {
	if a.n > 0 {
		if a.min <= lo && hi <= a.max {
			return
		}
		lo, hi = min(lo, a.min), max(hi, a.max)
	}
	if lo != hi {
		k := intWidth(lo, hi)
		a.hist.fit(k, lo>>k, hi>>k, a.n, a.min>>k)
	}
	a.min, a.max = lo, hi
}

func (a *integers) skip(n uint64) { a.nodata += n }

func (a *integers) samples() uint64 { return a.n + a.nodata }

func (a *integers) merge(acc accumulator) {
	o := acc.(*integers)
	a.nodata += o.nodata
	if o.n == 0 {
		return
	}
	a.extend(o.min, o.max)
	a.n += o.n
	a.addSum(o.sum[0], o.sum[1])
	a.addSquare(o.squares[0], o.squares[1], o.squares[2])
	a.hist.merge(&o.hist, o.n, o.min>>a.hist.k)
}

func (a *integers) report() Band {
	band := Band{NoData: a.nodata}
	m := moments{n: a.n, sum: *bigOf(a.sum[:], true), squares: *bigOf(a.squares[:], false)}
	offset := int64(0)
	if a.dtype == chunk.Uint64 { // v = key + c: Σv² = Σk² + 2cΣk + nc²
		offset = math.MinInt64 // -c as a key
		c := new(big.Int).Lsh(big.NewInt(1), 63)
		n := new(big.Int).SetUint64(a.n)
		cross := new(big.Int).Mul(&m.sum, c)
		m.squares.Add(&m.squares, cross.Lsh(cross, 1))
		nc := n.Mul(n, c)
		m.sum.Add(&m.sum, nc)
		m.squares.Add(&m.squares, new(big.Int).Mul(nc, c))
	}
	value := func(key int64) float64 {
		if offset != 0 {
			return float64(uint64(key) ^ 1<<63)
		}
		return float64(key)
	}
	var d distribution
	if a.n > 0 {
		d.min, d.max = value(a.min), value(a.max)
		a.hist.each(func(i int64, n uint64) {
			lo := value(i << a.hist.k)
			d.values = append(d.values, weighted{lo, lo + math.Ldexp(1, a.hist.k), n})
		})
		if a.hist.counts == nil {
			d.values = []weighted{{d.min, d.min, a.n}}
		}
		d.exact = a.hist.k == 0
		if d.exact { // a bin of width 1 holds one value
			for i := range d.values {
				d.values[i].hi = d.values[i].lo
			}
		}
	}
	band.fill(&m, &d)
	if a.n > 0 {
		band.setRange(a.decimal(a.min), a.decimal(a.max))
	}
	return band
}

// decimal writes a key's value.
func (a *integers) decimal(key int64) string {
	if a.dtype == chunk.Uint64 {
		return new(big.Int).SetUint64(uint64(key) ^ 1<<63).String()
	}
	return big.NewInt(key).String()
}

// bigOf returns a number of 64-bit words, least significant first.
func bigOf(words []uint64, signed bool) *big.Int {
	number := new(big.Int)
	for i := len(words) - 1; i >= 0; i-- {
		number.Lsh(number, 64)
		number.Or(number, new(big.Int).SetUint64(words[i]))
	}
	if signed && words[len(words)-1]>>63 == 1 {
		number.Sub(number, new(big.Int).Lsh(big.NewInt(1), uint(64*len(words))))
	}
	return number
}
