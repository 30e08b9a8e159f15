package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/draw"
)

// drawing is an SVG. The style sheet colours its shapes by their classes, so that it follows the page from light
// to dark.
type drawing struct {
	Width, Height float64
	Class, Label  string
	Shapes        []shape
}

// shape is a path, or a text if Text is set.
type shape struct {
	Class  string
	D      string // of a path
	X, Y   string
	Anchor string // of a text: start, middle, end
	Text   string
	Tip    string
	Fade   string // opacity; empty for 1
}

func (d *drawing) path(class, path string) { d.Shapes = append(d.Shapes, shape{Class: class, D: path}) }

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.path(class, "M"+pt(x1, y1)+"L"+pt(x2, y2))
}

func (d *drawing) text(class, anchor string, x, y float64, text string) {
	d.Shapes = append(d.Shapes, shape{Class: class, X: num(x), Y: num(y), Anchor: anchor, Text: text})
}

func num(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func pt(x, y float64) string { return num(x) + " " + num(y) }

func rect(x, y, w, h float64) string {
	return "M" + pt(x, y) + "h" + num(w) + "v" + num(h) + "h" + num(-w) + "z"
}

// newHistogram draws the histogram of a band.
func newHistogram(p draw.Panel) histogram {
	h := histogram{Name: p.Name}
	if p.Histogram == nil {
		h.Caption = "no valid pixel"
		return h
	}
	const w, height, left, right, top, bottom = 340.0, 190.0, 46.0, 16.0, 12.0, 38.0
	bars := p.Bars()
	edges, lo, hi, highest := bars.Edges, bars.Edges[0], bars.Edges[len(bars.Edges)-1], max(bars.Top(), 1)
	x := func(v float64) float64 { return left + bars.At(v)*(w-left-right) }
	y := func(n float64) float64 { return height - bottom - n/highest*(height-top-bottom) }
	d := &drawing{Width: w, Height: height, Class: "hist", Label: "histogram of " + h.Name}
	for _, v := range draw.Ticks(0, highest, 4) {
		d.line("grid", left, y(v), w-right, y(v))
		d.text("tick", "end", left-5, y(v)+3, draw.Number(v))
	}
	var area strings.Builder
	area.WriteString("M" + pt(x(edges[0]), y(0)))
	for i, n := range bars.Heights {
		area.WriteString("L" + pt(x(edges[i]), y(n)) + "L" + pt(x(edges[i+1]), y(n)))
	}
	area.WriteString("L" + pt(x(hi), y(0)) + "z")
	d.path("area", area.String())
	d.line("axis", left, y(0), w-right, y(0))
	for _, v := range draw.Ticks(lo, hi, 5) {
		d.line("axis", x(v), y(0), x(v), y(0)+3)
		d.text("tick", "middle", x(v), y(0)+14, draw.Number(v))
	}
	d.text("tick", "middle", (left+w-right)/2, height-8, "value")
	d.Shapes = append(d.Shapes, shape{Class: "tick up", X: "0", Y: "0", Anchor: "middle", Text: "pixels"})
	for _, m := range []struct {
		class string
		at    float64
	}{{"p", p.Percentiles["2.5"]}, {"p", p.Percentiles["98.5"]}, {"p50", p.Percentiles["50"]}, {"mean", *p.Mean}} {
		if m.at >= lo && m.at <= hi {
			d.line(m.class, x(m.at), top-6, x(m.at), y(0))
		}
	}
	h.Drawing = d
	if bars.Beyond > 0 {
		h.Caption = fmt.Sprintf("%s of the pixels are outside; the range is %s to %s",
			draw.Percent(bars.Beyond, p.Count), draw.Number(p.Histogram.Edges[0]),
			draw.Number(p.Histogram.Edges[len(p.Histogram.Edges)-1]))
	}
	return h
}

type histogram struct {
	Name, Caption string
	Drawing       *drawing
}
