package draw

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strings"
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
// PNG or SVG.
func WriteBars(w io.Writer, title, note string, panels []BarPanel, format string) error {
	if err := checkBars(panels); err != nil {
		return err
	}
	columns := min(len(panels), 1+(len(panels)+2)/3, 3)
	var tops []float64 // of rows, from the top
	height := 0.0
	for i := 0; i < len(panels); i += columns {
		tallest := 1
		for _, p := range panels[i:min(i+columns, len(panels))] {
			tallest = max(tallest, len(p.Bars))
		}
		tops = append(tops, height)
		height += barHead + float64(tallest)*barHeight + barGap
	}
	const margin = 16
	width := float64(max(columns, 2) * barPanelWidth)
	large, small := letters{size: 14, bold: true, color: ink}, letters{size: 8.5, color: pale}
	lines := small.wrap(note, width)
	head := float64(30 + 11*len(lines))
	c, err := newCanvas(format, width+2*margin, height+head+2*margin)
	if err != nil {
		return err
	}
	c.text(large, margin, margin, large.clip(title, width))
	for i, line := range lines {
		c.text(small, margin, margin+20+float64(i)*11, line)
	}
	for i, p := range panels {
		x, y := margin+float64(i%columns)*width/float64(columns), margin+head+tops[i/columns]
		p.draw(c, x, y, width/float64(columns)-24)
	}
	_, err = c.WriteTo(w)
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
func (p *BarPanel) draw(c canvas, x, y, width float64) {
	head, caption := letters{size: 10.5, bold: true, color: ink}, letters{size: 8, color: pale}
	c.text(head, x, y, head.clip(p.Name, width))
	c.text(caption, x, y+14, caption.clip(p.Caption, width))
	y += barHead
	if len(p.Bars) == 0 {
		c.text(letters{size: 9, color: pale}, x, y, "no values")
		return
	}
	name, value := letters{size: 8.5, color: ink, right: 1, middle: true}, letters{size: 8.5, color: ink, middle: true}
	left, right, top := 0.0, 0.0, 0.0
	for _, bar := range p.Bars {
		left = max(left, name.width(name.clip(bar.Name, width/3)))
		right = max(right, value.width(bar.label()))
		top = max(top, bar.Value, bar.High)
	}
	if top == 0 { // all values are 0; their bars would be NaN long
		top = 1
	}
	start, span := x+left+6, width-left-6-right-8
	place := func(v float64) float64 { return start + v/top*span }
	line := stroke{color: ink, width: 1}
	for i, bar := range p.Bars {
		mid := y + float64(i)*barHeight + barHeight/2
		c.text(name, start-6, mid, name.clip(bar.Name, width/3))
		fill := barPlain
		if bar.Marked {
			fill = barMarked
		}
		c.rect(fill, start, mid-5, place(bar.Value), mid+5)
		line.across(c, place(bar.Low), place(bar.High), mid)
		for _, v := range [...]float64{bar.Low, bar.High} {
			line.down(c, place(v), mid-2.5, mid+2.5)
		}
		c.text(value, max(place(bar.Value), place(bar.High))+6, mid, bar.label())
	}
	stroke{color: pale, width: 0.6}.down(c, start, y-2, y+float64(len(p.Bars))*barHeight+2)
}

func (b *Bar) label() string {
	if b.Note == "" {
		return Number(b.Value)
	}
	return Number(b.Value) + "  " + b.Note
}

// wrap breaks a text into lines of at most a width.
func (l letters) wrap(text string, width float64) []string {
	var lines []string
	for text != "" {
		line, rest := text, ""
		for l.width(line) > width {
			cut := strings.LastIndexByte(line, ' ')
			if cut <= 0 {
				line, rest = l.clip(line, width), ""
				break
			}
			line, rest = line[:cut], text[cut+1:]
		}
		lines, text = append(lines, line), rest
	}
	return lines
}
