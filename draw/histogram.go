package draw

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/stats"
)

// Panel is the histogram of a band, to be drawn.
type Panel struct {
	Name    string
	Integer bool // the dtype is an integer type
	stats.Band
}

// Bars is a histogram as drawn: bar i goes from Edges[i] to Edges[i+1].
type Bars struct {
	Edges   []float64
	Heights []float64
	Beyond  uint64 // number of values outside of the bars
}

// Top returns the height of the highest bar.
func (b *Bars) Top() float64 { return slices.Max(b.Heights) }

// At returns the place of a value between the first edge (0) and the last (1).
func (b *Bars) At(v float64) float64 { return share(v, b.Edges[0], b.Edges[len(b.Edges)-1]) }

// Bars returns the part of a panel's histogram to draw: all of it or, if 99.9 % of the values are in less than
// seven tenths of the range, that part. The histogram must not be nil.
//
// For integers, bins narrower than 1 are merged into one bar for each value. Of wider bins some hold one integer
// more than others, so that a smooth distribution would look like a comb: the heights of bins narrower than 16 are
// scaled as if all bins had equally many integers.
func (p *Panel) Bars() Bars {
	histogram := p.Histogram
	edges, counts := histogram.Edges, histogram.Counts
	n := len(counts)
	width := (edges[n] - edges[0]) / float64(n)
	// Beyond 2^52 a float64 cannot tell neighbouring integers apart.
	whole := p.Integer && math.Abs(edges[0]) < 1<<52 && math.Abs(edges[n]) < 1<<52
	if whole && width < 1 {
		edges, counts = perValue(histogram)
	}
	a, b, beyond := focus(counts)
	bars := Bars{Edges: edges[a : b+1], Heights: make([]float64, b-a), Beyond: beyond}
	for i := range bars.Heights {
		k := a + i
		bars.Heights[i] = float64(counts[k])
		// From a width of 16 on, one integer more changes a height by less than a fifteenth, which is not visible.
		if whole && width >= 1 && width < 16 {
			last := 0.0
			if k == n-1 {
				last = 1 // the last bin includes its upper edge
			}
			if held := math.Ceil(edges[k+1]) - math.Ceil(edges[k]) + last; held > 0 {
				bars.Heights[i] *= (edges[n] - edges[0] + 1) / float64(n) / held
			}
		}
	}
	return bars
}

// perValue returns a histogram with one bin for each value. Each bin of h must hold at most one integer.
func perValue(h *stats.Histogram) (edges []float64, counts []uint64) {
	first := math.Ceil(h.Edges[0])
	n := int(math.Floor(h.Edges[len(h.Edges)-1])-first) + 1
	counts = make([]uint64, n)
	for i, c := range h.Counts {
		if c > 0 {
			counts[min(int(math.Ceil(h.Edges[i])-first), n-1)] += c
		}
	}
	for i := range n + 1 {
		edges = append(edges, first+float64(i)-0.5)
	}
	return edges, counts
}

// focus returns the bins to draw, first to last-1, and the number of values outside of them.
func focus(counts []uint64) (first, last int, beyond uint64) {
	var total uint64
	for _, n := range counts {
		total += n
	}
	first, last = 0, len(counts)
	low, high := uint64(0), uint64(0)
	for first < last && low+counts[first] <= total/2000 {
		low += counts[first]
		first++
	}
	for last > first && high+counts[last-1] <= total/2000 {
		last--
		high += counts[last]
	}
	// Cutting off less than three tenths of the width would hide the range and gain little.
	if (last-first)*10 >= len(counts)*7 {
		return 0, len(counts), 0
	}
	// Two empty bins on each side show that the distribution ends there. Values in them are drawn, so that they
	// are not counted as outside.
	const margin = 2
	a, b := max(first-margin, 0), min(last+margin, len(counts))
	for _, n := range counts[a:b] {
		total -= n
	}
	return a, b, total
}

// share returns the place of v between lo (0) and hi (1). It halves all numbers before it subtracts, because
// hi - lo may be infinite; an empty range gives 0.
func share(v, lo, hi float64) float64 {
	if s := (v/2 - lo/2) / (hi/2 - lo/2); hi > lo && s >= 0 && s <= 1 {
		return s
	}
	return 0
}

// Ticks returns about n round numbers from lo to hi: multiples of 1, 2 or 5 times a power of ten. It returns at
// most 4·n numbers, and none if the range is empty or infinite.
func Ticks(lo, hi float64, n int) []float64 {
	raw := hi/float64(n) - lo/float64(n)
	if !(raw > 0) || math.IsInf(raw, 0) {
		return nil
	}
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, m := range []float64{1, 2, 5} {
		if raw <= m*power*1.0001 {
			step = m * power
			break
		}
	}
	if !(step > 0) || math.IsInf(step, 0) {
		return nil
	}
	var out []float64
	for k := math.Ceil(lo / step); len(out) < 4*n; k++ {
		v := k * step
		// v == v-step if step is too small to change v, and the loop would repeat one number.
		if v > hi || v == v-step {
			break
		}
		if v >= lo { // rounding in lo/step may give a number below lo
			out = append(out, v+0) // +0 turns -0 into 0
		}
	}
	return out
}

// Number formats a number with about four digits, and with k, M, G or T if it is large.
func Number(v float64) string {
	digits := func(v float64) string { return strconv.FormatFloat(v+0, 'g', 4, 64) } // + 0 turns -0 into 0
	a := math.Abs(v)
	if a >= 1e15 {
		return strings.Replace(digits(v), "e+", "e", 1)
	}
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if a >= u.size && a >= 9999.5 { // which would be 1e+04
			return digits(v/u.size) + u.name
		}
	}
	return digits(v)
}

// Percent formats n of all as a percentage. Only n = 0 gives 0 %, and only n = all gives 100 %: a single bad
// pixel must not disappear by rounding.
func Percent(n, all uint64) string {
	if n == 0 || all == 0 {
		return "0 %"
	}
	p := float64(n) / float64(all) * 100
	switch {
	case n == all:
		return "100 %"
	case p < 0.01:
		return "< 0.01 %"
	case p > 99.99:
		return "> 99.99 %"
	case p < 1:
		return strconv.FormatFloat(p, 'f', 2, 64) + " %"
	}
	return strconv.FormatFloat(p, 'f', 1, 64) + " %"
}
