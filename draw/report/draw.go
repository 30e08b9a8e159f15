package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/draw/markup"
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

// part returns the drawing as SVG, or nothing without one.
func (d *drawing) part() markup.Part {
	if d == nil {
		return nil
	}
	attr := func(name, value string) markup.Part { return markup.If(value != "", markup.Attr(name, value)) }
	return markup.El("svg", attr("xmlns", "http://www.w3.org/2000/svg"), class(d.Class),
		attr("viewBox", "0 0 "+num(d.Width)+" "+num(d.Height)), attr("role", "img"), attr("aria-label", d.Label),
		markup.Each(d.Shapes, func(s shape) markup.Part {
			if s.Text != "" {
				return markup.El("text", class(s.Class), attr("x", s.X), attr("y", s.Y), attr("text-anchor", s.Anchor),
					text(s.Text))
			}
			return markup.El("path", class(s.Class), attr("d", s.D), attr("fill-opacity", s.Fade),
				markup.Some("title", s.Tip))
		}))
}

// plot is a drawing of counts over an axis.
type plot struct {
	*drawing
	left, right, top, bottom float64 // margins
	highest                  float64 // count
}

// newPlot returns a plot with lines of the grid at about ticks counts.
func newPlot(label string, height, right, top, bottom, highest float64, ticks int) *plot {
	p := &plot{&drawing{Width: 340, Height: height, Class: "hist", Label: label}, 46, right, top, bottom, highest}
	for _, v := range draw.Ticks(0, highest, ticks) {
		p.line("grid", p.left, p.y(v), p.Width-p.right, p.y(v))
		p.text("tick", "end", p.left-5, p.y(v)+3, draw.Number(v))
	}
	return p
}

// x returns where a share of the axis is, from 0 to 1, and y where a count is.
func (p *plot) x(share float64) float64 { return p.left + share*(p.Width-p.left-p.right) }
func (p *plot) y(n float64) float64 {
	return p.Height - p.bottom - n/p.highest*(p.Height-p.top-p.bottom)
}

// mark draws a mark of the axis.
func (p *plot) mark(x float64, text string) {
	p.line("axis", x, p.y(0), x, p.y(0)+3)
	p.text("tick", "middle", x, p.y(0)+14, text)
}

// histogram draws the histogram of a band. The drawing is nil if there is none.
func histogram(p *draw.Panel) (d *drawing, caption string) {
	if p.Histogram == nil {
		return nil, "no valid pixel"
	}
	bars := p.Bars()
	edges, lo, hi := bars.Edges, bars.Edges[0], bars.Edges[len(bars.Edges)-1]
	plot := newPlot("histogram of "+p.Name, 190, 16, 12, 38, max(bars.Top(), 1), 4)
	x := func(v float64) float64 { return plot.x(bars.At(v)) }
	var area strings.Builder
	area.WriteString("M" + pt(x(edges[0]), plot.y(0)))
	for i, n := range bars.Heights {
		area.WriteString("L" + pt(x(edges[i]), plot.y(n)) + "L" + pt(x(edges[i+1]), plot.y(n)))
	}
	area.WriteString("L" + pt(x(hi), plot.y(0)) + "z")
	plot.path("area", area.String())
	plot.line("axis", plot.x(0), plot.y(0), plot.x(1), plot.y(0))
	for _, v := range draw.Ticks(lo, hi, 5) {
		plot.mark(x(v), draw.Number(v))
	}
	plot.text("tick", "middle", plot.x(0.5), plot.Height-8, "value")
	plot.Shapes = append(plot.Shapes, shape{Class: "tick up", X: "0", Y: "0", Anchor: "middle", Text: "pixels"})
	for _, m := range []struct {
		class string
		at    float64
	}{{"p", p.Percentiles["2.5"]}, {"p", p.Percentiles["98.5"]}, {"p50", p.Percentiles["50"]}, {"mean", *p.Mean}} {
		if m.at >= lo && m.at <= hi {
			plot.line(m.class, x(m.at), plot.top-6, x(m.at), plot.y(0))
		}
	}
	if bars.Beyond > 0 {
		caption = fmt.Sprintf("%s of the pixels are outside; the range is %s to %s",
			draw.Percent(bars.Beyond, p.Count), draw.Number(p.Histogram.Edges[0]),
			draw.Number(p.Histogram.Edges[len(p.Histogram.Edges)-1]))
	}
	return plot.drawing, caption
}
