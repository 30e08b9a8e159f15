package draw

import (
	"bytes"
	"encoding/xml"
	"image/color"
	"image/png"
	"io"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestRectanglesAreWherePlaced: the pixels of a PNG that have the colour are those of the rectangle at two pixels a
// point, and no others.
func TestRectanglesAreWherePlaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x0, y0 := rapid.IntRange(0, 40).Draw(t, "x0"), rapid.IntRange(0, 30).Draw(t, "y0")
		w, h := rapid.IntRange(1, 20).Draw(t, "w"), rapid.IntRange(1, 20).Draw(t, "h")
		c, err := newCanvas(PNG, 60, 50)
		if err != nil {
			t.Fatal(err)
		}
		c.rect(marks, float64(x0)/2, float64(y0)/2, float64(x0+w)/2, float64(y0+h)/2)
		var b bytes.Buffer
		if _, err := c.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				got := color.NRGBAModel.Convert(img.At(x, y)) == color.Color(marks)
				if want := x >= x0 && x < x0+w && y >= y0 && y < y0+h; got != want {
					t.Fatalf("pixel %d, %d: got marked %v; want %v", x, y, got, want)
				}
			}
		}
	})
}

// TestNothingIsOutside: no rectangle and no text of a figure lies outside of it, whatever the numbers are.
func TestNothingIsOutside(t *testing.T) {
	figures := map[string]func(io.Writer) error{
		"histograms": func(w io.Writer) error { return WriteHistograms(w, "title", somePanels(t, 7), SVG) },
	}
	for name, write := range figures {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		var figure struct {
			ViewBox string `xml:"viewBox,attr"`
			Rects   []struct {
				X      float64 `xml:"x,attr"`
				Y      float64 `xml:"y,attr"`
				Width  float64 `xml:"width,attr"`
				Height float64 `xml:"height,attr"`
			} `xml:"rect"`
			Texts []struct {
				X     float64 `xml:"x,attr"`
				Y     float64 `xml:"y,attr"`
				Width float64 `xml:"textLength,attr"`
				Text  string  `xml:",chardata"`
			} `xml:"text"`
		}
		if err := xml.Unmarshal(b.Bytes(), &figure); err != nil {
			t.Fatal(err)
		}
		sides := strings.Fields(figure.ViewBox)
		width, _ := strconv.ParseFloat(sides[2], 64)
		height, _ := strconv.ParseFloat(sides[3], 64)
		for _, r := range figure.Rects {
			if r.X < 0 || r.Y < 0 || r.X+r.Width > width+1 || r.Y+r.Height > height+1 || r.Width < 0 || r.Height < 0 {
				t.Errorf("%s: got the rectangle %+v; want it inside of %v by %v", name, r, width, height)
			}
		}
		for _, l := range figure.Texts {
			if l.X < 0 || l.Y < 0 || l.X+l.Width > width+1 || l.Y > height {
				t.Errorf("%s: got the text %+v; want it inside of %v by %v", name, l, width, height)
			}
		}
	}
}
