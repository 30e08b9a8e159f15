package moments

import (
	"encoding/json"
	"math"
	"math/big"
	"sort"
	"strconv"

	"github.com/chaski-eo/chaski/stats"
)

// maxClasses is how many classes labels of 8 bits can have.
const maxClasses = 256

// histogramBins is the number of bins of a stats.Histogram.
const histogramBins = 100

// percentiles are the reported percentiles by name.
var percentiles = [...]struct {
	name    string
	percent float64
}{{"2.5", 2.5}, {"50", 50}, {"98.5", 98.5}}

// exactMoments are exact sums of n values, in units of 2^unit, and of their squares, in units of
// 2^(2·unit).
type exactMoments struct {
	n            uint64
	unit         int
	sum, squares big.Int
}

// add adds n times the value mantissa·2^(unit+shift).
func (m *exactMoments) add(n uint64, mantissa *big.Int, shift uint) {
	m.n += n
	value := new(big.Int).Lsh(mantissa, shift)
	product := new(big.Int).SetUint64(n)
	product.Mul(product, value)
	m.sum.Add(&m.sum, product)
	m.squares.Add(&m.squares, product.Mul(product, value))
}

// split returns v as mantissa·2^exponent with an odd mantissa (or 0, 0).
func split(v float64) (mantissa int64, exponent int) {
	if v == 0 {
		return 0, 0
	}
	fraction, exponent := math.Frexp(v)
	mantissa, exponent = int64(fraction*(1<<53)), exponent-53
	for mantissa&1 == 0 {
		mantissa /= 2
		exponent++
	}
	return mantissa, exponent
}

// meanStd returns Σx/n and sqrt((nΣx²-(Σx)²)/n²), rounded once, because sums that
// are rounded on the way do not merge to the same bits in any order. n must not be 0.
func (m *exactMoments) meanStd() (mean, std float64) {
	n := new(big.Int).SetUint64(m.n)
	mean, _ = scaled(new(big.Rat).SetFrac(&m.sum, n), m.unit).Float64()
	spread := new(big.Int).Mul(n, &m.squares)
	spread.Sub(spread, new(big.Int).Mul(&m.sum, &m.sum))
	if spread.Sign() <= 0 {
		return mean, 0
	}
	// sqrt(spread)/n·2^unit; the quotient has 256 bits more than a float64 keeps.
	root := new(big.Float).SetPrec(320).SetInt(spread)
	root.Sqrt(root)
	root.Quo(root, new(big.Float).SetPrec(320).SetInt(n))
	root.SetMantExp(root, m.unit)
	std, _ = root.Float64()
	return mean, std
}

// scaled returns r·2^k.
func scaled(r *big.Rat, k int) *big.Rat {
	power := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(max(k, -k))))
	if k < 0 {
		return r.Quo(r, power)
	}
	return r.Mul(r, power)
}

// weighted is a group of n values from lo to hi.
type weighted struct {
	lo, hi float64
	n      uint64
}

// distribution has n values in groups, in order. If it is exact, lo equals hi in every group.
type distribution struct {
	groups   []weighted
	min, max float64
	exact    bool
	n        uint64
	before   []uint64 // number of values before each group
}

// prepare fills in what follows from the groups.
func (d *distribution) prepare() {
	if d.exact {
		d.min, d.max = d.groups[0].lo, d.groups[len(d.groups)-1].lo
	}
	d.before = make([]uint64, len(d.groups))
	for i, group := range d.groups {
		d.before[i] = d.n
		d.n += group.n
	}
}

// at returns the value of a rank, counted from 0. The values in a bin are taken to be spread
// evenly.
func (d *distribution) at(rank uint64) float64 {
	switch rank {
	case 0:
		return d.min
	case d.n - 1:
		return d.max
	}
	i := sort.Search(len(d.before), func(i int) bool { return d.before[i] > rank }) - 1
	group := d.groups[i]
	if group.lo == group.hi {
		return group.lo
	}
	value := group.lo + float64((group.hi-group.lo)*((float64(rank-d.before[i])+0.5)/float64(group.n)))
	return min(max(value, d.min), d.max)
}

// percentile interpolates between the two nearest ranks of grouped values, with the same bits on every processor.
// Quantile would need all values, and may fuse steps.
func (d *distribution) percentile(percent float64) float64 {
	place := float64(float64(d.n-1) * (percent / 100))
	rank := uint64(math.Floor(place))
	part := place - math.Floor(place)
	below, above := d.at(min(rank, d.n-1)), d.at(min(rank+1, d.n-1))
	// Like numpy, interpolate from the nearer end, because the result is monotone in part only then.
	step := above - below
	switch {
	case step > math.MaxFloat64:
		return float64(below*(1-part)) + float64(above*part)
	case part >= 0.5:
		return above - float64(step*(1-part))
	}
	return below + float64(step*part)
}

// histogram puts every value into one of 100 bins, and the values of a fine bin at its middle.
func (d *distribution) histogram() *stats.Histogram {
	histogram := &stats.Histogram{Edges: make([]float64, histogramBins+1), Counts: make([]uint64, histogramBins)}
	lo, hi := d.min, d.max
	if lo == hi {
		lo, hi = lo-0.5, hi+0.5
	}
	step := (hi - lo) / histogramBins
	for i := range histogram.Edges {
		t := float64(i) / histogramBins
		switch {
		case step > math.MaxFloat64: // hi-lo exceeds the largest float64
			histogram.Edges[i] = float64(lo*(1-t)) + float64(hi*t)
		case step < 0x1p-1000: // step is so small that it has lost bits
			histogram.Edges[i] = lo + float64((hi-lo)*t)
		default: // like numpy.linspace
			histogram.Edges[i] = lo + float64(float64(i)*step)
		}
	}
	histogram.Edges[histogramBins] = hi
	for _, group := range d.groups {
		middle := min(max(float64(group.lo/2)+float64(group.hi/2), d.min), d.max)
		bin := sort.Search(histogramBins, func(i int) bool { return histogram.Edges[i+1] > middle })
		histogram.Counts[min(bin, histogramBins-1)] += group.n
	}
	return histogram
}

// fill sets all fields of a band except the counts of samples that were left out.
func fill(b *stats.Band, m *exactMoments, d *distribution) {
	b.Count = m.n
	if m.n == 0 {
		return
	}
	mean, std := m.meanStd()
	b.Mean, b.Std = &mean, &std
	d.prepare()
	setRange(b, decimal(d.min), decimal(d.max))
	b.Histogram = d.histogram()
	b.Percentiles = map[string]float64{}
	for _, p := range percentiles {
		b.Percentiles[p.name] = d.percentile(p.percent)
	}
	if !d.exact {
		b.Resolution = d.groups[0].hi - d.groups[0].lo
	}
}

func setRange(b *stats.Band, lo, hi string) {
	least, greatest := json.Number(lo), json.Number(hi)
	b.Min, b.Max = &least, &greatest
}

// decimal writes a value with as few digits as a float64 needs.
func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
