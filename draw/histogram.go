package draw

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	plotfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

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

// Formats of figures.
const (
	PNG = "png"
	SVG = "svg"
)

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

// typeface returns a font that comes with gonum/plot.
func typeface(size vg.Length, bold bool) plotfont.Font {
	f := plotfont.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = font.WeightBold
	}
	return f
}

func letters(size vg.Length, bold bool, c color.Color) draw.TextStyle {
	return draw.TextStyle{Color: c, Font: typeface(size, bold), Handler: plot.DefaultTextHandler, YAlign: draw.YTop}
}

// WriteHistograms writes a figure with a panel a band: its histogram, lines at the percentiles 2.5, 50
// and 98.5 and at the mean, and in its caption these numbers and the share of nodata. Where nearly all
// samples lie in a part of the range only that is drawn, and the caption says how many lie beyond.
// format is PNG or SVG; an SVG has its fonts with it.
func WriteHistograms(w io.Writer, title string, panels []Panel, format string) error {
	if len(panels) == 0 || len(panels) > MaxPanels {
		return fmt.Errorf("draw: there are %d histograms: a figure has 1 to %d", len(panels), MaxPanels)
	}
	columns := int(math.Ceil(math.Sqrt(float64(len(panels)))))
	if len(panels) <= 3 {
		columns = len(panels)
	}
	rows := (len(panels) + columns - 1) / columns
	pw, ph := 3.5*vg.Inch, 2.75*vg.Inch
	if len(panels) == 1 {
		pw, ph = 6.5*vg.Inch, 4.25*vg.Inch
	}
	const margin, head = 14, 40
	width, height := vg.Length(columns)*pw+2*margin, vg.Length(rows)*ph+2*margin+head
	canvas, err := newCanvas(format, width, height)
	if err != nil {
		return err
	}
	dc := draw.New(canvas)
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	dc = draw.Crop(dc, margin, -margin, margin, -margin)
	heading(dc, clip(title, typeface(14, true), dc.Max.X-dc.Min.X))
	for i, panel := range panels {
		x, y := dc.Min.X+vg.Length(i%columns)*pw, dc.Max.Y-head-vg.Length(i/columns)*ph
		cell := draw.Canvas{Canvas: dc.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: x, Y: y - ph},
			Max: vg.Point{X: x + pw, Y: y}}}
		panel.draw(draw.Crop(cell, 6, -10, 6, -6))
	}
	_, err = canvas.WriteTo(w)
	return err
}

type figure interface {
	vg.CanvasSizer
	io.WriterTo
}

func newCanvas(format string, w, h vg.Length) (figure, error) {
	switch format {
	case PNG:
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(144))}, nil
	case SVG:
		return vgsvg.NewWith(vgsvg.UseWH(w, h), vgsvg.EmbedFonts(true)), nil
	}
	return nil, fmt.Errorf("draw: the format is %q: it must be %s or %s", format, PNG, SVG)
}

// heading draws the title and the legend of the lines.
func heading(dc draw.Canvas, title string) {
	corner := vg.Point{X: dc.Min.X + 6, Y: dc.Max.Y}
	dc.FillText(letters(14, true, ink), corner, title)
	corner.Y -= 21
	sty := letters(9, false, pale)
	for _, e := range []struct {
		text string
		line draw.LineStyle
	}{{"percentiles 2.5 and 98.5", percentileLine}, {"median", medianLine}, {"mean", meanLine}} {
		y := corner.Y - 5
		dc.StrokeLine2(e.line, corner.X, y, corner.X+18, y)
		corner.X += 23
		dc.FillText(sty, corner, e.text)
		corner.X += sty.Width(e.text) + 16
	}
}

var (
	percentileLine = draw.LineStyle{Color: marks, Width: 1, Dashes: []vg.Length{3, 2}}
	medianLine     = draw.LineStyle{Color: marks, Width: 1.1}
	meanLine       = draw.LineStyle{Color: average, Width: 1.4, Dashes: []vg.Length{1, 1.6}}
)

// draw draws a panel: name, caption, histogram.
func (p *Panel) draw(dc draw.Canvas) {
	width := dc.Max.X - dc.Min.X
	corner := vg.Point{X: dc.Min.X, Y: dc.Max.Y}
	dc.FillText(letters(10.5, true, ink), corner, clip(p.Name, typeface(10.5, true), width))
	corner.Y -= 15
	for i, line := range p.captions() {
		dc.FillText(letters(8, false, pale), vg.Point{X: corner.X, Y: corner.Y - vg.Length(i)*10.5},
			clip(line, typeface(8, false), width))
	}
	if p.Histogram == nil {
		sty := letters(10, false, pale)
		sty.XAlign, sty.YAlign = draw.XCenter, draw.YCenter
		dc.FillText(sty, vg.Point{X: (dc.Min.X + dc.Max.X) / 2, Y: (dc.Min.Y + dc.Max.Y) / 2}, "no valid pixel")
		return
	}
	p.plot().Draw(draw.Crop(dc, 0, 0, 0, -40))
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

func (p *Panel) plot() *plot.Plot {
	q := plot.New()
	q.BackgroundColor = color.Transparent
	s := &steps{p.Bars()}
	q.Add(s, p.lines(s))
	for _, axis := range []*plot.Axis{&q.X, &q.Y} {
		axis.Label.TextStyle.Font, axis.Label.TextStyle.Color = typeface(8, false), pale
		axis.Tick.Label.Font, axis.Tick.Label.Color = typeface(8, false), pale
		axis.Color, axis.Tick.Color = pale, pale
		axis.Width, axis.Tick.Width, axis.Tick.Length = 0.5, 0.5, 3
		axis.Padding = 0
		axis.Tick.Marker = ticker{}
	}
	q.X.Label.Text, q.Y.Label.Text = "value", "pixels"
	q.X.Tick.Marker = ticker{lo: s.Edges[0], hi: s.Edges[len(s.Edges)-1], scaled: true}
	q.X.Min, q.X.Max, q.Y.Min, q.Y.Max = 0, 1, 0, s.Top()*1.06
	return q
}

// lines returns the lines of the percentiles and the mean that lie within the drawn range.
func (p *Panel) lines(s *steps) verticals {
	v := verticals{}
	for _, e := range []struct {
		at   float64
		line draw.LineStyle
	}{
		{p.Percentiles["2.5"], percentileLine}, {p.Percentiles["98.5"], percentileLine},
		{p.Percentiles["50"], medianLine}, {*p.Mean, meanLine},
	} {
		if e.at >= s.Edges[0] && e.at <= s.Edges[len(s.Edges)-1] {
			v = append(v, vertical{s.At(e.at), e.line})
		}
	}
	return v
}

// steps draws the outline of a histogram over horizontal hair lines.
type steps struct{ Bars }

// Plot implements plot.Plotter.
func (s *steps) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if t.Value > 0 && !t.IsMinor() {
			c.StrokeLine2(draw.LineStyle{Color: hair, Width: 0.6}, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
	points := []vg.Point{{X: x(0), Y: y(0)}}
	for i, n := range s.Heights {
		points = append(points, vg.Point{X: x(s.At(s.Edges[i])), Y: y(n)}, vg.Point{X: x(s.At(s.Edges[i+1])), Y: y(n)})
	}
	points = append(points, vg.Point{X: x(1), Y: y(0)})
	c.FillPolygon(barFill, points)
	c.StrokeLines(draw.LineStyle{Color: bars, Width: 1}, points)
}

type vertical struct {
	at   float64
	line draw.LineStyle
}

type verticals []vertical

// Plot implements plot.Plotter.
func (v verticals) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, l := range v {
		c.StrokeLine2(l.line, x(l.at), c.Min.Y, x(l.at), c.Max.Y)
	}
}

// ticker implements plot.Ticker with about five round numbers. On a scaled axis, lo to hi is drawn from 0 to 1,
// because a plot's own arithmetic would overflow for ranges near the largest float64.
type ticker struct {
	lo, hi float64
	scaled bool
}

// Ticks implements plot.Ticker.
func (k ticker) Ticks(lo, hi float64) []plot.Tick {
	if k.scaled {
		lo, hi = k.lo, k.hi
	}
	var t []plot.Tick
	for _, v := range Ticks(lo, hi, 5) {
		edge := v
		if k.scaled {
			edge = share(v, lo, hi)
		}
		t = append(t, plot.Tick{Value: edge, Label: Number(v)})
	}
	return t
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

// clip shortens a text to one line of at most the given width.
func clip(text string, f plotfont.Font, width vg.Length) string {
	r := []rune(strings.ToValidUTF8(text, "�"))
	if len(r) > 200 {
		r = append(r[:199], '…')
	}
	for i, c := range r {
		if c < ' ' || c >= 0x7F && c < 0xA0 {
			r[i] = ' '
		}
	}
	face := plotfont.DefaultCache.Lookup(f, f.Size)
	for len(r) > 1 && face.Width(string(r)) > width {
		r = append(r[:max(len(r)-2, 0)], '…')
	}
	return string(r)
}
