package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/draw"
)

// frame places a part of the globe on the drawing.
type frame struct {
	minX, minY, maxX, maxY float64 // degrees
	scaleX, scaleY         float64 // drawing units a degree
	left, top, w, h        float64 // of the frame in the drawing
}

func (f *frame) x(v float64) float64 { return f.left + (v-f.minX)*f.scaleX }
func (f *frame) y(v float64) float64 { return f.top + (f.maxY-v)*f.scaleY }

// newFrame puts a margin around the outlines. Lengths are in proportion in the middle of the map.
func newFrame(m *Map) frame {
	f := frame{minX: math.Inf(1), minY: math.Inf(1), maxX: math.Inf(-1), maxY: math.Inf(-1),
		left: 84, top: 10, w: 810, h: 400}
	for _, outline := range m.Outlines {
		x0, y0, x1, y1 := outline.bounds()
		f.minX, f.minY, f.maxX, f.maxY = min(f.minX, x0), min(f.minY, y0), max(f.maxX, x1), max(f.maxY, y1)
	}
	middleX, middleY := (f.minX+f.maxX)/2, (f.minY+f.maxY)/2
	squeeze := max(math.Cos(middleY*math.Pi/180), 0.05)
	// A tenth of the frame stays free at each side. 1e-5 degrees, a metre or so, keep a single point from filling it.
	f.scaleY = 0.8 * min(f.w/((f.maxX-f.minX)*squeeze+1e-5), f.h/(f.maxY-f.minY+1e-5))
	f.scaleX = f.scaleY * squeeze
	f.minX, f.maxX = middleX-f.w/f.scaleX/2, middleX+f.w/f.scaleX/2
	f.minY, f.maxY = middleY-f.h/f.scaleY/2, middleY+f.h/f.scaleY/2
	return f
}

func (o Outline) bounds() (x0, y0, x1, y1 float64) {
	x0, y0, x1, y1 = o[0][0], o[0][1], o[0][0], o[0][1]
	for _, c := range o[1:] {
		x0, y0, x1, y1 = min(x0, c[0]), min(y0, c[1]), max(x1, c[0]), max(y1, c[1])
	}
	return x0, y0, x1, y1
}

// footprints draws the map, and says what it shows. The drawing is nil if there is nothing to draw.
func (m *Map) footprints() (_ *drawing, note string) {
	if len(m.Outlines) == 0 {
		return nil, ""
	}
	m.joinAntimeridian()
	frame := newFrame(m)
	g := &drawing{Width: frame.left + frame.w + 28, Height: frame.top + frame.h + 30, Class: "map",
		Label: "map of footprints"}
	g.path("sea", rect(frame.left, frame.top, frame.w, frame.h))
	g.graticule(&frame)
	for _, outline := range m.Outlines {
		g.outline(&frame, outline)
	}
	g.path("rim", rect(frame.left, frame.top, frame.w, frame.h))
	note = plural(int64(len(m.Outlines)), "footprint", "footprints") + " in longitude and latitude."
	if m.Elsewhere > 0 {
		note += fmt.Sprintf(" %s in CRSs that are not known are not drawn.", thousands(m.Elsewhere))
	}
	if m.Looked < m.Of {
		note += fmt.Sprintf(" %s of %s samples were read, chosen at random.", thousands(m.Looked), thousands(m.Of))
	}
	return g, note
}

// outline draws an outline. One smaller than four units would hardly be visible, so that a dot is drawn instead.
func (g *drawing) outline(f *frame, outline Outline) {
	x0, y0, x1, y1 := outline.bounds()
	if (x1-x0)*f.scaleX < 4 && (y1-y0)*f.scaleY < 4 {
		x, y := f.x((x0+x1)/2), f.y((y0+y1)/2)
		g.path("dot", "M"+pt(x-3, y)+"a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z")
		return
	}
	var path strings.Builder
	for i, c := range outline {
		path.WriteString([]string{"M", "L", "L", "L"}[i] + pt(f.x(c[0]), f.y(c[1])))
	}
	g.path("box", path.String()+"z")
}

// graticule draws meridians and parallels.
func (g *drawing) graticule(f *frame) {
	for _, v := range draw.Ticks(f.minX, f.maxX, 6) {
		g.line("grid", f.x(v), f.top, f.x(v), f.top+f.h)
		g.text("tick", "middle", f.x(v), f.top+f.h+16, degrees(math.Remainder(v, 360), "E", "W"))
	}
	for _, v := range draw.Ticks(max(f.minY, -90), min(f.maxY, 90), 4) {
		g.line("grid", f.left, f.y(v), f.left+f.w, f.y(v))
		g.text("tick", "end", f.left-6, f.y(v)+4, degrees(v, "N", "S"))
	}
}

// degrees formats a longitude from -180 to 180, or a latitude.
func degrees(v float64, positive, negative string) string {
	side := " " + positive
	switch {
	case v < 0:
		side = " " + negative
	case v == 0:
		side = ""
	}
	return strconv.FormatFloat(math.Abs(v), 'g', 8, 64) + "°" + side
}
