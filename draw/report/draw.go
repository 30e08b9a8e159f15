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

// part returns the drawing as SVG, or nothing without one.
func (d *drawing) part() part {
	if d == nil {
		return nil
	}
	given := func(name, value string) part { return when(value != "", attr(name, value)) }
	return el("svg", attr("xmlns", "http://www.w3.org/2000/svg"), class(d.Class),
		attr("viewBox", "0 0 "+num(d.Width)+" "+num(d.Height)), attr("role", "img"), given("aria-label", d.Label),
		each(d.Shapes, func(s shape) part {
			if s.Text != "" {
				return el("text", class(s.Class), given("x", s.X), given("y", s.Y), given("text-anchor", s.Anchor),
					text(s.Text))
			}
			return el("path", class(s.Class), attr("d", s.D))
		}))
}

// histogram draws the histogram of a band. It returns no drawing for a band without a histogram.
func histogram(p *draw.Panel) (d *drawing, caption string) {
	if p.Histogram == nil {
		return nil, "no valid pixel"
	}
	bars := p.Bars()
	edges, lo, hi := bars.Edges, bars.Edges[0], bars.Edges[len(bars.Edges)-1]
	const w, height, left, right, top, bottom = 340.0, 190.0, 46.0, 16.0, 12.0, 38.0
	highest := max(bars.Top(), 1)
	x := func(v float64) float64 { return left + bars.At(v)*(w-left-right) }
	y := func(n float64) float64 { return height - bottom - n/highest*(height-top-bottom) }
	d = &drawing{Width: w, Height: height, Class: "hist", Label: "histogram of " + p.Name}
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
	if bars.Beyond > 0 {
		caption = fmt.Sprintf("%s of the pixels are outside; the range is %s to %s",
			draw.Percent(bars.Beyond, p.Count), draw.Number(p.Histogram.Edges[0]),
			draw.Number(p.Histogram.Edges[len(p.Histogram.Edges)-1]))
	}
	return d, caption
}
