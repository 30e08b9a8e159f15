package moments

import (
	"math"
	"math/big"
	"strconv"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/stats"
)

// integers measures integers of 32 and 64 bits. It works on keys, int64 numbers in the order of the
// values: the values themselves, or value-2^63 for uint64.
type integers struct {
	dtype       chunk.DType
	nodata      uint64
	hist[int64] // of the keys, as the sums
	wordSums
}

func newIntegers(d chunk.DType) *integers {
	bin := func(key int64, k int) int64 { return key >> k }
	return &integers{dtype: d, hist: hist[int64]{width: intWidth, bin: bin}}
}

// keyOf returns the key of a value with these bits.
func keyOf(d chunk.DType, bits uint64) int64 {
	switch d {
	case chunk.Uint64:
		return int64(bits ^ 1<<63)
	case chunk.Int32:
		return int64(int32(bits))
	case chunk.Uint32:
		return int64(uint32(bits))
	}
	return int64(bits)
}

func (a *integers) add(b []byte, nd *noData, tmp *scratch) {
	keys := tmp.ints[:0]
	switch a.dtype {
	case chunk.Int32:
		for _, v := range cast.Values[int32](b) {
			keys = append(keys, int64(v))
		}
	case chunk.Uint32:
		for _, v := range cast.Values[uint32](b) {
			keys = append(keys, int64(v))
		}
	case chunk.Uint64:
		for _, v := range cast.Values[uint64](b) {
			keys = append(keys, int64(v^1<<63))
		}
	default:
		keys = append(keys, cast.Values[int64](b)...)
	}
	if nd.on {
		kept := keys[:0]
		for _, key := range keys {
			if key != nd.key {
				kept = append(kept, key)
			}
		}
		a.nodata += uint64(len(keys) - len(kept))
		keys = kept
	}
	if len(keys) == 0 {
		return
	}
	lo, hi, total := keys[0], keys[0], a.wordSums // where it is at hand
	for _, key := range keys {
		lo, hi = min(lo, key), max(hi, key)
		total.add(key)
	}
	a.wordSums = total
	a.extend(lo, hi)
	a.n += uint64(len(keys))
	if counts, shift, base := a.hist.counts, a.hist.k, a.hist.base; counts != nil {
		for _, key := range keys {
			counts[key>>shift-base]++
		}
	}
}

// intWidth returns the smallest k at which the keys from lo to hi take at most histBins bins of width 2^k.
func intWidth(lo, hi int64) (k int) {
	for uint64(hi>>k)-uint64(lo>>k) >= histBins {
		k++
	}
	return k
}

func (a *integers) skip(n uint64) { a.nodata += n }

func (a *integers) samples() uint64 { return a.n + a.nodata }

func (a *integers) merge(acc accumulator) {
	other := acc.(*integers)
	a.nodata += other.nodata
	a.wordSums.merge(&other.wordSums)
	a.hist.merge(&other.hist)
}

func (a *integers) measure() known {
	band := stats.Band{NoData: a.nodata}
	moments := exactMoments{n: a.n}
	moments.sum, moments.squares = a.big()
	value := func(key int64) float64 { return float64(key) }
	if a.dtype == chunk.Uint64 { // v = key + c: Σv² = Σkey² + 2cΣkey + nc²
		value = func(key int64) float64 { return float64(uint64(key) ^ 1<<63) }
		c := new(big.Int).Lsh(big.NewInt(1), 63)
		cross := new(big.Int).Mul(&moments.sum, c)
		moments.squares.Add(&moments.squares, cross.Lsh(cross, 1))
		shift := new(big.Int).SetUint64(a.n)
		shift.Mul(shift, c)
		moments.sum.Add(&moments.sum, shift)
		moments.squares.Add(&moments.squares, shift.Mul(shift, c))
	}
	var values distribution
	if a.n > 0 {
		values.min, values.max = value(a.min), value(a.max)
		values.exact = a.hist.k == 0 // a bin of width 1 holds one value
		a.hist.each(func(bin int64, n uint64) {
			lo := value(bin << a.hist.k)
			hi := lo
			if !values.exact {
				hi += math.Ldexp(1, a.hist.k)
			}
			values.groups = append(values.groups, weighted{lo, hi, n})
		})
		if a.hist.counts == nil {
			values.groups = []weighted{{values.min, values.min, a.n}}
		}
	}
	if a.n > 0 {
		setRange(&band, a.decimal(a.min), a.decimal(a.max))
	}
	return known{band: band, moments: moments, values: values}
}

// decimal writes a key's value.
func (a *integers) decimal(key int64) string {
	if a.dtype == chunk.Uint64 {
		return strconv.FormatUint(uint64(key)^1<<63, 10)
	}
	return strconv.FormatInt(key, 10)
}
