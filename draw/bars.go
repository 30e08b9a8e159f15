package draw

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bar is a named value. Its bar goes from 0 to Value, and a line from Low to High.
type Bar struct {
	Name             string
	Value, Low, High float64
	Note             string // drawn after the value
	Marked           bool   // drawn in a strong colour
}

// BarPanel is a group of bars with a common scale.
type BarPanel struct {
	Name, Caption string
	Bars          []Bar
}

// MaxBars is the largest number of bars in one panel.
const MaxBars = 64

// Sizes of a figure of bars, in points.
const (
	barPanelWidth = 330
	barHeight     = 15
	barHead       = 34 // name and caption of a panel
	barGap        = 22 // below a panel
)

var (
	barMarked = color.NRGBA{0x00, 0x77, 0xBB, 255}
	barPlain  = color.NRGBA{0xB4, 0xBC, 0xC6, 255}
)

// WriteBars writes a figure of horizontal bars with one panel for each group. Each bar has its value and a line
// from its minimum to its maximum. Values must be finite and not negative. note is drawn below the title. format is
// PNG or SVG; an SVG embeds its fonts.
func WriteBars(w io.Writer, title, note string, panels []BarPanel, format string) error {
	if err := checkBars(panels); err != nil {
		return err
	}
	columns := min(len(panels), 1+(len(panels)+2)/3, 3)
	var tops []vg.Length // of rows, from the top
	height := vg.Length(0)
	for i := 0; i < len(panels); i += columns {
		tallest := 1
		for _, p := range panels[i:min(i+columns, len(panels))] {
			tallest = max(tallest, len(p.Bars))
		}
		tops = append(tops, height)
		height += barHead + vg.Length(tallest)*barHeight + barGap
	}
	const margin = 16
	width := max(vg.Length(columns)*barPanelWidth, 2*barPanelWidth)
	lines := wrap(note, 8.5, width)
	head := vg.Length(30 + 11*len(lines))
	canvas, err := newCanvas(format, width+2*margin, height+head+2*margin)
	if err != nil {
		return err
	}
	dc := draw.New(canvas)
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	dc = draw.Crop(dc, margin, -margin, margin, -margin)
	dc.FillText(letters(14, true, ink), vg.Point{X: dc.Min.X, Y: dc.Max.Y}, clip(title, typeface(14, true), width))
	for i, line := range lines {
		dc.FillText(letters(8.5, false, pale), vg.Point{X: dc.Min.X, Y: dc.Max.Y - 20 - vg.Length(i)*11}, line)
	}
	for i, p := range panels {
		x, y := dc.Min.X+vg.Length(i%columns)*width/vg.Length(columns), dc.Max.Y-head-tops[i/columns]
		p.draw(dc, x, y, width/vg.Length(columns)-24)
	}
	_, err = canvas.WriteTo(w)
	return err
}

func checkBars(panels []BarPanel) error {
	if len(panels) == 0 || len(panels) > MaxPanels {
		return fmt.Errorf("draw: there are %d groups of bars: a figure has 1 to %d", len(panels), MaxPanels)
	}
	for _, barPanel := range panels {
		if len(barPanel.Bars) > MaxBars {
			return fmt.Errorf("draw: there are %d bars in %q: at most %d fit", len(barPanel.Bars), barPanel.Name,
				MaxBars)
		}
		for _, bar := range barPanel.Bars {
			for _, v := range [...]float64{bar.Value, bar.Low, bar.High} {
				if !(v >= 0) || math.IsInf(v, 0) {
					return fmt.Errorf("draw: the bar %q has the value %v: values must be finite and not negative",
						bar.Name, v)
				}
			}
		}
	}
	return nil
}

// draw draws a panel with its upper left corner at (x, y).
func (p *BarPanel) draw(dc draw.Canvas, x, y, width vg.Length) {
	dc.FillText(letters(10.5, true, ink), vg.Point{X: x, Y: y}, clip(p.Name, typeface(10.5, true), width))
	dc.FillText(letters(8, false, pale), vg.Point{X: x, Y: y - 14}, clip(p.Caption, typeface(8, false), width))
	y -= barHead
	if len(p.Bars) == 0 {
		dc.FillText(letters(9, false, pale), vg.Point{X: x, Y: y}, "no values")
		return
	}
	name, value := letters(8.5, false, ink), letters(8.5, false, ink)
	name.XAlign, name.YAlign, value.YAlign = draw.XRight, draw.YCenter, draw.YCenter
	left, right, top := vg.Length(0), vg.Length(0), 0.0
	for _, bar := range p.Bars {
		left = max(left, name.Width(clip(bar.Name, name.Font, width/3)))
		right = max(right, value.Width(bar.label()))
		top = max(top, bar.Value, bar.High)
	}
	if top == 0 { // all values are 0; their bars would be NaN long
		top = 1
	}
	start, span := x+left+6, width-left-6-right-8
	place := func(v float64) vg.Length { return start + vg.Length(v/top)*span }
	for i, bar := range p.Bars {
		mid := y - vg.Length(i)*barHeight - barHeight/2
		dc.FillText(name, vg.Point{X: start - 6, Y: mid}, clip(bar.Name, name.Font, width/3))
		fill := barPlain
		if bar.Marked {
			fill = barMarked
		}
		dc.FillPolygon(fill, []vg.Point{{X: start, Y: mid - 5}, {X: place(bar.Value), Y: mid - 5},
			{X: place(bar.Value), Y: mid + 5}, {X: start, Y: mid + 5}})
		dc.StrokeLine2(draw.LineStyle{Color: ink, Width: 1}, place(bar.Low), mid, place(bar.High), mid)
		for _, v := range [...]float64{bar.Low, bar.High} {
			dc.StrokeLine2(draw.LineStyle{Color: ink, Width: 1}, place(v), mid-2.5, place(v), mid+2.5)
		}
		dc.FillText(value, vg.Point{X: max(place(bar.Value), place(bar.High)) + 6, Y: mid}, bar.label())
	}
	dc.StrokeLine2(draw.LineStyle{Color: pale, Width: 0.6}, start, y+2, start, y-vg.Length(len(p.Bars))*barHeight-2)
}

func (b *Bar) label() string {
	if b.Note == "" {
		return Number(b.Value)
	}
	return Number(b.Value) + "  " + b.Note
}

// wrap breaks a text into lines of at most the given width.
func wrap(text string, size vg.Length, width vg.Length) []string {
	var lines []string
	sty := letters(size, false, pale)
	for text != "" {
		line, rest := text, ""
		for sty.Width(line) > width {
			cut := lastSpace(line)
			if cut < 0 {
				line, rest = clip(line, sty.Font, width), ""
				break
			}
			line, rest = line[:cut], text[cut+1:]
		}
		lines, text = append(lines, line), rest
	}
	return lines
}

func lastSpace(s string) int {
	for i := len(s) - 1; i > 0; i-- {
		if s[i] == ' ' {
			return i
		}
	}
	return -1
}
