package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/draw"
)

// frame places a box of the ground on the drawing.
type frame struct {
	minX, minY, maxX, maxY float64 // ground
	scaleX, scaleY         float64 // drawing units a unit of the ground
	left, top, w, h        float64 // of the frame in the drawing
}

func (f *frame) x(v float64) float64 { return f.left + (v-f.minX)*f.scaleX }
func (f *frame) y(v float64) float64 { return f.top + (f.maxY-v)*f.scaleY }

// newFrame puts a margin around the boxes and keeps lengths in proportion. In degrees they are right in the middle of
// the map.
func newFrame(m *Map) (f frame) {
	f.minX, f.minY, f.maxX, f.maxY = math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	width, height := 0.0, 0.0 // largest box
	for _, b := range m.Outlines {
		x0, y0, x1, y1 := b.bounds()
		f.minX, f.minY, f.maxX, f.maxY = min(f.minX, x0), min(f.minY, y0), max(f.maxX, x1), max(f.maxY, y1)
		width, height = max(width, x1-x0), max(height, y1-y0)
	}
	squeeze := 1.0
	if m.Geographic {
		squeeze = max(math.Cos((f.minY+f.maxY)/2*math.Pi/180), 0.05)
	}
	tiny := max(math.Abs(f.minX), math.Abs(f.minY), math.Abs(f.maxX), math.Abs(f.maxY), 1) * 1e-7
	padX := max((f.maxX-f.minX)*0.06, width*0.35, tiny)
	padY := max((f.maxY-f.minY)*0.06, height*0.35, tiny)
	f.minX, f.maxX, f.minY, f.maxY = f.minX-padX, f.maxX+padX, f.minY-padY, f.maxY+padY
	f.left, f.top, f.w = 84, 10, 810
	// The height follows from the width, within limits. If the boxes are then too narrow, they get room at their
	// sides, so that lengths stay in proportion.
	f.h = min(max(f.w*(f.maxY-f.minY)/((f.maxX-f.minX)*squeeze), 240), 460)
	scale := min(f.w/((f.maxX-f.minX)*squeeze), f.h/(f.maxY-f.minY))
	f.scaleX, f.scaleY = scale*squeeze, scale
	moreX, moreY := (f.w/f.scaleX-(f.maxX-f.minX))/2, (f.h/f.scaleY-(f.maxY-f.minY))/2
	f.minX, f.maxX, f.minY, f.maxY = f.minX-moreX, f.maxX+moreX, f.minY-moreY, f.maxY+moreY
	return f
}

func (b Outline) bounds() (x0, y0, x1, y1 float64) {
	x0, y0, x1, y1 = b[0][0], b[0][1], b[0][0], b[0][1]
	for _, c := range b[1:] {
		x0, y0, x1, y1 = min(x0, c[0]), min(y0, c[1]), max(x1, c[0]), max(y1, c[1])
	}
	return x0, y0, x1, y1
}

// footprints draws the map, and says what it shows. The drawing is nil if there is nothing to draw.
func (m *Map) footprints() (_ *drawing, note string) {
	if len(m.Outlines) == 0 {
		return nil, ""
	}
	frame := newFrame(m)
	g := &drawing{Width: frame.left + frame.w + 28, Height: frame.top + frame.h + 30, Class: "map",
		Label: "map of footprints"}
	g.path("sea", rect(frame.left, frame.top, frame.w, frame.h))
	g.graticule(&frame, m.Geographic)
	g.outlines(&frame, m.Outlines)
	g.path("rim", rect(frame.left, frame.top, frame.w, frame.h))
	g.scaleBar(&frame, m.Geographic)
	note = fmt.Sprintf("%s in %s.", plural(int64(len(m.Outlines)), "footprint", "footprints"), m.CRS)
	if m.Elsewhere > 0 {
		note += fmt.Sprintf(" %s in other CRSs are not drawn.", thousands(m.Elsewhere))
	}
	if m.Looked < m.Of {
		note += fmt.Sprintf(" %s of %s samples were read, chosen at random.", thousands(m.Looked), thousands(m.Of))
	}
	return g, note
}

func (g *drawing) outlines(f *frame, boxes []Outline) {
	// A box smaller than four units would hardly be visible, so that a dot is drawn instead.
	for _, outline := range boxes {
		x0, y0, x1, y1 := outline.bounds()
		if (x1-x0)*f.scaleX < 4 && (y1-y0)*f.scaleY < 4 {
			x, y := f.x((x0+x1)/2), f.y((y0+y1)/2)
			g.path("dot", "M"+pt(x-3, y)+"a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z")
			continue
		}
		var p strings.Builder
		for i, c := range outline {
			p.WriteString([]string{"M", "L", "L", "L"}[i] + pt(f.x(c[0]), f.y(c[1])))
		}
		g.path("box", p.String()+"z")
	}
}

// degreeSteps are the usual distances between meridians or parallels, in degrees.
var degreeSteps = []float64{45, 30, 20, 10, 5, 2, 1}

func gridSteps(lo, hi float64, n int, degrees bool) []float64 {
	if !degrees || (hi-lo)/float64(n) < 1 {
		return draw.Ticks(lo, hi, n)
	}
	step := degreeSteps[0]
	for _, s := range degreeSteps {
		if (hi-lo)/s <= float64(n)*1.5 {
			step = s
		}
	}
	var out []float64
	for v := math.Ceil(lo/step) * step; v <= hi; v += step {
		out = append(out, v)
	}
	return out
}

func (g *drawing) graticule(f *frame, degrees bool) {
	xs, ys := gridSteps(f.minX, f.maxX, 6, degrees), gridSteps(f.minY, f.maxY, 4, degrees)
	for i, v := range xs {
		g.line("grid", f.x(v), f.top, f.x(v), f.top+f.h)
		g.text("tick", "middle", f.x(v), f.top+f.h+16, gridLabel(v, spacing(xs, i), degrees, "E", "W"))
	}
	for i, v := range ys {
		if degrees && math.Abs(v) > 90 {
			continue
		}
		g.line("grid", f.left, f.y(v), f.left+f.w, f.y(v))
		g.text("tick", "end", f.left-6, f.y(v)+4, gridLabel(v, spacing(ys, i), degrees, "N", "S"))
	}
}

func spacing(v []float64, i int) float64 {
	switch {
	case i > 0:
		return v[i] - v[i-1]
	case len(v) > 1:
		return v[1] - v[0]
	}
	return 1
}

// gridLabel formats a longitude, latitude or coordinate with as many digits as the distance of the lines needs.
func gridLabel(v, step float64, degrees bool, positive, negative string) string {
	digits := max(0, -int(math.Floor(math.Log10(math.Abs(step))+1e-9)))
	if !degrees {
		return minus(strconv.FormatFloat(v, 'f', digits, 64))
	}
	side := positive
	if positive == "E" {
		for v > 180 {
			v -= 360
		}
		for v < -180 {
			v += 360
		}
	}
	if v < 0 {
		v, side = -v, negative
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Trim(s, "0.") == "" || side != "N" && side != "S" && v == 180 {
		return s + "°"
	}
	return s + "° " + side
}

// scaleBar draws a round length of about a fifth of the width. It draws none without degrees, because the unit of
// another CRS is not known.
func (g *drawing) scaleBar(f *frame, degrees bool) {
	if !degrees {
		return
	}
	const perDegree = 111.195 // kilometres of a great circle of 6,371 km
	perKm := f.scaleY / perDegree
	km := f.w / 5 / perKm
	if !(km > 0) || km > 5000 {
		return // on a map of a large part of the globe a length would be right in few places
	}
	power := math.Pow(10, math.Floor(math.Log10(km)))
	length := power
	for _, k := range []float64{2, 5} {
		if k*power <= km {
			length = k * power
		}
	}
	name := fmt.Sprintf("%g km", length)
	if length < 1 {
		name = fmt.Sprintf("%g m", math.Round(length*1e6)/1e3)
	}
	w, x, y := length*perKm, f.left+14, f.top+f.h-14
	g.path("scale-back", rect(x-8, y-20, w+16, 28))
	g.path("scale", "M"+pt(x, y-5)+"v5h"+num(w)+"v-5")
	g.text("tick scale-text", "middle", x+w/2, y-8, name)
}
