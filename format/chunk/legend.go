package chunk

import (
	"fmt"
	"image/color"
)

// Legend says how the classes of a raster are painted and what they are called, by their numbers from 0 on.
type Legend struct {
	Palette []string // as of Colours; nil for none
	Names   []string // "" for a number without one; nil for none
}

// MaxClasses is how many classes a legend has at most: as many as samples of 16 bits have numbers.
const MaxClasses = 1 << 16

// Colours returns colours as #rrggbb, or as #rrggbbaa if they are transparent, up to the last one that differs from
// black.
func Colours(colours []color.NRGBA) (out []string) {
	last := 0
	for i, c := range colours {
		text := fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
		if c.A != 0xff {
			text += fmt.Sprintf("%02x", c.A)
		}
		if out = append(out, text); text != "#000000" {
			last = i + 1
		}
	}
	return out[:last]
}
