package draw

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// Formats of figures.
const (
	PNG = "png"
	SVG = "svg"
)

// canvas is a white figure of rectangles and texts. Lengths are in points, y grows downwards, and rectangles are moved
// to whole pixels, so that lines are sharp.
type canvas interface {
	rect(fill color.NRGBA, x0, y0, x1, y1 float64)
	text(l letters, x, y float64, text string)
	io.WriterTo
}

// newCanvas returns an empty figure of a format, PNG or SVG.
func newCanvas(format string, width, height float64) (canvas, error) {
	switch format {
	case PNG:
		c := &pngCanvas{image.NewNRGBA(image.Rect(0, 0, int(width*pixelsPerPoint), int(height*pixelsPerPoint)))}
		draw.Draw(c.image, c.image.Rect, image.White, image.Point{}, draw.Src)
		return c, nil
	case SVG:
		c := &svgCanvas{}
		fmt.Fprintf(&c.out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0fpt" height="%.0fpt" `+
			`viewBox="0 0 %.0f %.0f" font-family="Go, Arial, Helvetica, sans-serif">`+"\n", width, height, width,
			height)
		c.rect(color.NRGBA{255, 255, 255, 255}, 0, 0, width, height)
		return c, nil
	}
	return nil, fmt.Errorf("draw: the format is %q: it must be %s or %s", format, PNG, SVG)
}

// stroke is how a line is drawn.
type stroke struct {
	color color.NRGBA
	width float64
	dash  float64 // length of a dash and of the gap behind it; 0 for a whole line
}

// across draws a horizontal line.
func (s stroke) across(c canvas, x0, x1, y float64) {
	s.dashes(x0, x1, func(a, b float64) { c.rect(s.color, a, y-s.width/2, b, y+s.width/2) })
}

// down draws a vertical line.
func (s stroke) down(c canvas, x, y0, y1 float64) {
	s.dashes(y0, y1, func(a, b float64) { c.rect(s.color, x-s.width/2, a, x+s.width/2, b) })
}

func (s stroke) dashes(from, to float64, one func(a, b float64)) {
	from, to = min(from, to), max(from, to)
	if s.dash == 0 {
		one(from, to)
		return
	}
	for a := from; a < to; a += 2 * s.dash {
		one(a, min(a+s.dash, to))
	}
}

// letters is how a text is drawn.
type letters struct {
	size  float64
	bold  bool
	color color.NRGBA
	right float64 // the part of the text that lies left of its place: 0, 0.5 or 1
	// middle puts the middle of its capitals at its place, and not their top.
	middle bool
}

// capitals is the height of capital letters of the Go fonts, relative to their size.
const capitals = 0.73

// fonts are the Go fonts, regular and bold.
var fonts = sync.OnceValue(func() (parsed [2]*opentype.Font) {
	for i, data := range [][]byte{goregular.TTF, gobold.TTF} {
		var err error
		if parsed[i], err = opentype.Parse(data); err != nil {
			panic(err) // it is part of the program
		}
	}
	return parsed
})

// face returns the letters at a scale in pixels per point.
func (l letters) face(scale float64) font.Face {
	parsed := fonts()[0]
	if l.bold {
		parsed = fonts()[1]
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: l.size, DPI: 72 * scale})
	if err != nil {
		panic(err) // only of options that are not numbers
	}
	return face
}

// width returns the width of a text in points.
func (l letters) width(text string) float64 {
	const scale = 8 // advances are whole pixels
	return float64(font.MeasureString(l.face(scale), text)) / 64 / scale
}

// baseline returns where the text begins, for a place.
func (l letters) baseline(x, y float64, text string) (float64, float64) {
	drop := capitals * l.size
	if l.middle {
		drop /= 2
	}
	return x - l.right*l.width(text), y + drop
}

// clip shortens a text to one line of at most a width.
func (l letters) clip(text string, width float64) string {
	r := []rune(strings.ToValidUTF8(text, "�"))
	if len(r) > 200 {
		r = append(r[:199], '…')
	}
	for i, c := range r {
		if c < ' ' || c >= 0x7F && c < 0xA0 {
			r[i] = ' '
		}
	}
	for len(r) > 1 && l.width(string(r)) > width {
		r = append(r[:max(len(r)-2, 0)], '…')
	}
	return string(r)
}

// pixelsPerPoint is the scale of PNG: 144 pixels an inch.
const pixelsPerPoint = 2

type pngCanvas struct{ image *image.NRGBA }

func (c *pngCanvas) rect(fill color.NRGBA, x0, y0, x1, y1 float64) {
	ax, bx := pixels(x0, x1)
	ay, by := pixels(y0, y1)
	draw.Draw(c.image, image.Rect(ax, ay, bx, by), image.NewUniform(fill), image.Point{}, draw.Over)
}

// pixels returns the pixels from a to b: as many as the length rounds to, at least one.
func pixels(a, b float64) (first, end int) {
	first = int(math.Round(a * pixelsPerPoint))
	return first, first + max(int(math.Round(b*pixelsPerPoint))-first, 1)
}

func (c *pngCanvas) text(l letters, x, y float64, text string) {
	x, y = l.baseline(x, y, text)
	dot := fixed.Point26_6{X: fixed.Int26_6(x * 64 * pixelsPerPoint), Y: fixed.Int26_6(y * 64 * pixelsPerPoint)}
	drawer := font.Drawer{Dst: c.image, Src: image.NewUniform(l.color), Face: l.face(pixelsPerPoint), Dot: dot}
	drawer.DrawString(text)
}

// WriteTo implements io.WriterTo.
func (c *pngCanvas) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	if err := png.Encode(&b, c.image); err != nil {
		return 0, err
	}
	return b.WriteTo(w)
}

type svgCanvas struct{ out bytes.Buffer }

func (c *svgCanvas) rect(fill color.NRGBA, x0, y0, x1, y1 float64) {
	fmt.Fprintf(&c.out, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"`, x0, y0, x1-x0, y1-y0, hex(fill))
	if fill.A < 255 {
		fmt.Fprintf(&c.out, ` fill-opacity="%.3f"`, float64(fill.A)/255)
	}
	c.out.WriteString(" shape-rendering=\"crispEdges\"/>\n")
}

// text writes a text with its width, because a reader may have another font.
func (c *svgCanvas) text(l letters, x, y float64, text string) {
	if text == "" {
		return
	}
	x, y = l.baseline(x, y, text)
	weight := ""
	if l.bold {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(&c.out, `<text x="%.2f" y="%.2f" font-size="%g"%s fill="%s" textLength="%.2f" `+
		`lengthAdjust="spacingAndGlyphs">`, x, y, l.size, weight, hex(l.color), l.width(text))
	_ = xml.EscapeText(&c.out, []byte(text))
	c.out.WriteString("</text>\n")
}

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// WriteTo implements io.WriterTo.
func (c *svgCanvas) WriteTo(w io.Writer) (int64, error) {
	c.out.WriteString("</svg>\n")
	return c.out.WriteTo(w)
}
