package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/color"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"
)

func TestWriteBarsDrawsEveryBarInProportion(t *testing.T) {
	panel := BarPanel{
		Name: "p",
		Bars: []Bar{
			{Name: "a", Value: 100, Low: 100, High: 100, Marked: true},
			{Name: "b", Value: 50, Low: 50, High: 50, Marked: true},
		},
	}
	var b bytes.Buffer
	if err := WriteBars(&b, "title", "note", []BarPanel{panel}, PNG); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	// A bar's length is the longest run of its colour in a row of pixels.
	var lengths []int
	inBar := false
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		n := 0
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			if color.NRGBAModel.Convert(img.At(x, y)) == color.Color(barMarked) {
				n++
			}
		}
		if n > 0 && !inBar {
			lengths = append(lengths, n)
		}
		inBar = n > 0
	}
	if len(lengths) != 2 || lengths[0] < 50 || math.Abs(float64(lengths[0])/float64(lengths[1])-2) > 0.05 {
		t.Errorf("bars of %v pixels, want two, the first twice as long", lengths)
	}
}

func TestWriteBarsSVGIsWellFormedAndNamesEverything(t *testing.T) {
	var b bytes.Buffer
	panels := []BarPanel{
		{
			Name: "first <shape>", Caption: "caption",
			Bars: []Bar{{Name: "peer & co", Value: 1234, Low: 1000, High: 1500, Note: "times 2"}},
		},
		{Name: "empty"},
	}
	if err := WriteBars(&b, "the title", strings.Repeat("a long note ", 40), panels, SVG); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	d := xml.NewDecoder(&b)
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := tok.(xml.CharData); ok {
			text.Write(c)
		}
	}
	for _, want := range []string{
		"the title", "first <shape>", "caption", "peer & co", "1234", "times 2", "no values",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in the figure", want)
		}
	}
}

func TestWriteBarsRefuses(t *testing.T) {
	ok := []BarPanel{{Name: "p", Bars: []Bar{{Name: "a", Value: 1}}}}
	for name, c := range map[string]struct {
		panels []BarPanel
		format string
	}{
		"no panel": {nil, PNG}, "too many panels": {make([]BarPanel, MaxPanels+1), PNG}, "format": {ok, "gif"},
		"too many bars": {[]BarPanel{{Bars: make([]Bar, MaxBars+1)}}, PNG},
		"NaN":           {[]BarPanel{{Bars: []Bar{{Value: math.NaN()}}}}, PNG},
		"negative":      {[]BarPanel{{Bars: []Bar{{Low: -1}}}}, PNG},
		"infinite":      {[]BarPanel{{Bars: []Bar{{High: math.Inf(1)}}}}, PNG},
	} {
		if err := WriteBars(io.Discard, "", "", c.panels, c.format); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestWrapLosesNoWord(t *testing.T) {
	text := "median of three rounds of ten seconds with least and most, two workers each"
	lines := letters{size: 8.5}.wrap(text, 120)
	if len(lines) < 2 || strings.Join(lines, " ") != text {
		t.Errorf("%q", lines)
	}
}
