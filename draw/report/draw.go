package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/draw"
)

func num(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func pt(x, y float64) string { return num(x) + " " + num(y) }

// histogram draws the histogram of a band as SVG. It returns no drawing for a band without a histogram. The style sheet
// colours the shapes by their classes, so that they follow the page from light to dark.
func histogram(p *draw.Panel) (d part, caption string) {
	if p.Histogram == nil {
		return nil, "no valid pixel"
	}
	bars := p.Bars()
	edges, lo, hi := bars.Edges, bars.Edges[0], bars.Edges[len(bars.Edges)-1]
	const w, height, left, right, top, bottom = 340.0, 190.0, 46.0, 16.0, 12.0, 38.0
	highest := max(bars.Top(), 1)
	x := func(v float64) float64 { return left + bars.At(v)*(w-left-right) }
	y := func(n float64) float64 { return height - bottom - n/highest*(height-top-bottom) }
	var shapes parts
	path := func(names, d string) { shapes = append(shapes, el("path", class(names), attr("d", d))) }
	line := func(names string, x1, y1, x2, y2 float64) { path(names, "M"+pt(x1, y1)+"L"+pt(x2, y2)) }
	label := func(names, anchor string, x, y float64, content string) {
		shapes = append(shapes, el("text", class(names), attr("x", num(x)), attr("y", num(y)),
			attr("text-anchor", anchor), text(content)))
	}
	for _, v := range draw.Ticks(0, highest, 4) {
		line("grid", left, y(v), w-right, y(v))
		label("tick", "end", left-5, y(v)+3, draw.Number(v))
	}
	var area strings.Builder
	area.WriteString("M" + pt(x(edges[0]), y(0)))
	for i, n := range bars.Heights {
		area.WriteString("L" + pt(x(edges[i]), y(n)) + "L" + pt(x(edges[i+1]), y(n)))
	}
	area.WriteString("L" + pt(x(hi), y(0)) + "z")
	path("area", area.String())
	line("axis", left, y(0), w-right, y(0))
	for _, v := range draw.Ticks(lo, hi, 5) {
		line("axis", x(v), y(0), x(v), y(0)+3)
		label("tick", "middle", x(v), y(0)+14, draw.Number(v))
	}
	label("tick", "middle", (left+w-right)/2, height-8, "value")
	label("tick up", "middle", 0, 0, "pixels")
	for _, m := range []struct {
		class string
		at    float64
	}{{"p", p.Percentiles["2.5"]}, {"p", p.Percentiles["98.5"]}, {"p50", p.Percentiles["50"]}, {"mean", *p.Mean}} {
		if m.at >= lo && m.at <= hi {
			line(m.class, x(m.at), top-6, x(m.at), y(0))
		}
	}
	if bars.Beyond > 0 {
		caption = fmt.Sprintf("%s of the pixels are outside; the range is %s to %s",
			draw.Percent(bars.Beyond, p.Count), draw.Number(p.Histogram.Edges[0]),
			draw.Number(p.Histogram.Edges[len(p.Histogram.Edges)-1]))
	}
	return el("svg", attr("xmlns", "http://www.w3.org/2000/svg"), class("hist"),
		attr("viewBox", "0 0 "+num(w)+" "+num(height)), attr("role", "img"),
		attr("aria-label", "histogram of "+p.Name), shapes), caption
}
