package draw

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/stats"
)

// Panel is one band of a figure of histograms.
type Panel struct {
	Name    string
	Integer bool // the dtype is an integer type
	stats.Band
}

// MaxPanels is the largest number of panels in one figure.
const MaxPanels = 64

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

// Colours of figures: the first, second and third category.
var (
	ink     = color.NRGBA{0x20, 0x24, 0x2C, 255}
	pale    = color.NRGBA{0x60, 0x68, 0x74, 255}
	hair    = color.NRGBA{0xE4, 0xE7, 0xEB, 255}
	bars    = color.NRGBA{0x00, 0x77, 0xBB, 255}
	barFill = color.NRGBA{0x00, 0x77, 0xBB, 64}
	marks   = color.NRGBA{0xCC, 0x33, 0x11, 255}
	average = color.NRGBA{0x00, 0x8A, 0x7A, 255}
)

// WriteHistograms writes a figure with a panel a band: its histogram, lines at the percentiles 2.5, 50
// and 98.5 and at the mean, and in its caption these numbers and the share of nodata. Where nearly all
// samples lie in a part of the range only that is drawn, and the caption says how many lie beyond.
// format is PNG or SVG.
func WriteHistograms(w io.Writer, title string, panels []Panel, format string) error {
	if len(panels) == 0 || len(panels) > MaxPanels {
		return fmt.Errorf("draw: there are %d histograms: a figure has 1 to %d", len(panels), MaxPanels)
	}
	columns := int(math.Ceil(math.Sqrt(float64(len(panels)))))
	if len(panels) <= 3 {
		columns = len(panels)
	}
	rows := (len(panels) + columns - 1) / columns
	const inch, margin, head = 72, 14, 40
	panelWidth, panelHeight := 3.5*inch, 2.75*inch
	if len(panels) == 1 {
		panelWidth, panelHeight = 6.5*inch, 4.25*inch
	}
	width, height := float64(columns)*panelWidth, float64(rows)*panelHeight+head
	c, err := newCanvas(format, width+2*margin, height+2*margin)
	if err != nil {
		return err
	}
	heading(c, margin+6, margin, width, title)
	for i, panel := range panels {
		x, y := margin+float64(i%columns)*panelWidth, margin+head+float64(i/columns)*panelHeight
		panel.draw(c, frame{x + 6, y + 6, x + panelWidth - 10, y + panelHeight - 6})
	}
	_, err = c.WriteTo(w)
	return err
}

// frame is a part of a figure, from (x0, y0) to (x1, y1).
type frame struct{ x0, y0, x1, y1 float64 }

// heading draws the title and the legend of the lines.
func heading(c canvas, x, y, width float64, title string) {
	large, small := letters{size: 14, bold: true, color: ink}, letters{size: 9, color: pale}
	c.text(large, x, y, large.clip(title, width))
	y += 21
	for _, e := range []struct {
		text string
		line stroke
	}{{"percentiles 2.5 and 98.5", percentileLine}, {"median", medianLine}, {"mean", meanLine}} {
		e.line.across(c, x, x+18, y+capitals*small.size/2)
		x += 23
		c.text(small, x, y, e.text)
		x += small.width(e.text) + 16
	}
}

var (
	percentileLine = stroke{color: marks, width: 1, dash: 2.5}
	medianLine     = stroke{color: marks, width: 1.1}
	meanLine       = stroke{color: average, width: 1.5, dash: 1.5}
)

// draw draws a panel: name, caption, histogram.
func (p *Panel) draw(c canvas, f frame) {
	name, small := letters{size: 10.5, bold: true, color: ink}, letters{size: 8, color: pale}
	c.text(name, f.x0, f.y0, name.clip(p.Name, f.x1-f.x0))
	for i, line := range p.captions() {
		c.text(small, f.x0, f.y0+15+float64(i)*10.5, small.clip(line, f.x1-f.x0))
	}
	if p.Histogram == nil {
		l := letters{size: 10, color: pale, right: 0.5, middle: true}
		c.text(l, (f.x0+f.x1)/2, (f.y0+f.y1)/2, "no valid pixel")
		return
	}
	p.plot(c, frame{f.x0, f.y0 + 42, f.x1, f.y1})
}

// captions returns the two lines below a panel's name.
func (p *Panel) captions() []string {
	lines := make([]string, 2)
	total := p.Count + p.NoData + p.NaN + p.Inf
	left := fmt.Sprintf("%s pixels · nodata %s", Number(float64(p.Count)), Percent(p.NoData, total))
	for _, e := range []struct {
		n    uint64
		name string
	}{{p.NaN, "NaN"}, {p.Inf, "infinite"}} {
		if e.n > 0 {
			left += fmt.Sprintf(" · %s %s", e.name, Percent(e.n, total))
		}
	}
	lines[0] = left
	if p.Mean == nil {
		return lines[:1]
	}
	lines[1] = fmt.Sprintf("mean %s ± %s · range %s to %s", Number(*p.Mean), Number(*p.Std),
		number(p.Min), number(p.Max))
	if beyond := p.Bars().Beyond; beyond > 0 {
		lines[1] += fmt.Sprintf(" · %s outside", Percent(beyond, p.Count))
	}
	return lines
}

// plot draws the histogram: axes with about five round numbers, the outline over hair lines, and the lines of the
// percentiles and the mean that lie within the drawn range.
func (p *Panel) plot(c canvas, f frame) {
	bars := p.Bars()
	small := letters{size: 8, color: pale}
	top := bars.Top() * 1.06
	heights := Ticks(0, top, 5)
	left := 0.0
	for _, v := range heights {
		left = max(left, small.width(Number(v)))
	}
	inner := frame{f.x0 + 12 + left + 6, f.y0 + 10, f.x1 - 8, f.y1 - 24}
	x := func(share float64) float64 { return inner.x0 + share*(inner.x1-inner.x0) }
	y := func(height float64) float64 { return inner.y1 - height/top*(inner.y1-inner.y0) }
	axis := stroke{color: pale, width: 0.5}

	beside := letters{size: 8, color: pale, right: 1, middle: true}
	for _, v := range heights {
		if v > 0 {
			stroke{color: hair, width: 0.6}.across(c, inner.x0, inner.x1, y(v))
		}
		axis.across(c, inner.x0-3, inner.x0, y(v))
		c.text(beside, inner.x0-5, y(v), Number(v))
	}
	c.text(small, f.x0, f.y0-1, "pixels")
	below := letters{size: 8, color: pale, right: 0.5}
	for _, v := range Ticks(bars.Edges[0], bars.Edges[len(bars.Edges)-1], 5) {
		axis.down(c, x(bars.At(v)), inner.y1, inner.y1+3)
		c.text(below, x(bars.At(v)), inner.y1+6, Number(v))
	}
	c.text(below, (inner.x0+inner.x1)/2, inner.y1+17, "value")

	bars.draw(c, x, y)
	axis.down(c, inner.x0, inner.y0, inner.y1)
	axis.across(c, inner.x0, inner.x1, inner.y1)
	for _, e := range []struct {
		value float64
		line  stroke
	}{
		{p.Percentiles["2.5"], percentileLine}, {p.Percentiles["98.5"], percentileLine},
		{p.Percentiles["50"], medianLine}, {*p.Mean, meanLine},
	} {
		if e.value >= bars.Edges[0] && e.value <= bars.Edges[len(bars.Edges)-1] {
			e.line.down(c, x(bars.At(e.value)), inner.y0, inner.y1)
		}
	}
}

// draw draws the bars, and an outline around all of them.
func (b *Bars) draw(c canvas, x, y func(float64) float64) {
	outline := stroke{color: bars, width: 1}
	last := 0.0
	for i, height := range b.Heights {
		x0, x1 := x(b.At(b.Edges[i])), x(b.At(b.Edges[i+1]))
		if height > 0 {
			c.rect(barFill, x0, y(height), x1, y(0))
			outline.across(c, x0, x1, y(height))
		}
		if height != last {
			outline.down(c, x0, y(height), y(last))
		}
		last = height
	}
	if last > 0 {
		outline.down(c, x(1), y(last), y(0))
	}
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
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Sprint(v)
	case a >= 1e15 || a > 0 && a < 1e-4:
		return strings.Replace(strconv.FormatFloat(v, 'g', 4, 64), "e+", "e", 1)
	case a < 1e4:
		return plain(v)
	}
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if a >= u.size {
			return plain(v/u.size) + u.name
		}
	}
	return plain(v)
}

// plain formats a number with four significant digits, but with all digits before the point.
func plain(v float64) string {
	digits := 3
	if a := math.Abs(v); a >= 1 {
		digits = max(0, 3-int(math.Log10(a)))
	} else if a > 0 {
		digits = min(3-int(math.Floor(math.Log10(a))), 8)
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

// number formats a minimum or maximum, which may have more digits than a float64.
func number(n interface{ String() string }) string {
	v, err := strconv.ParseFloat(n.String(), 64)
	if err != nil {
		return n.String()
	}
	return Number(v)
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
