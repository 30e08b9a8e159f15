package pixels

import (
	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/shuffle"
)

// Inside cuts window w, which with pad may reach past the asset, to an image.
func Inside(w shuffle.Box, height, width int) chunk.Box {
	return chunk.Box{
		Y0: min(max(w.Y, 0), height), Y1: max(min(w.Y+w.H, height), 0),
		X0: min(max(w.X, 0), width), X1: max(min(w.X+w.W, width), 0),
	}
}

// ratio is the size of a field's assets relative to the first raster field's, as a reduced fraction
// a side: lengths there are lengths here times num / den.
type ratio struct{ numY, DenY, numX, DenX int }

// maxRatio bounds both sides of a fraction: fields of one sample share a grid of pixels.
const maxRatio = 64

func NewRatio(first, other *chunk.Index) (ratio, error) {
	gy, gx := gcd(first.Height, other.Height), gcd(first.Width, other.Width)
	r := ratio{other.Height / gy, first.Height / gy, other.Width / gx, first.Width / gx}
	if max(r.numY, r.DenY, r.numX, r.DenX) > maxRatio {
		return r, fault.New(fault.Unsupported, "asset", fault.NoOffset,
			"assets of %d by %d pixels do not share a grid with those of the first raster field, %d by %d",
			other.Height, other.Width, first.Height, first.Width)
	}
	return r, nil
}

// Holds reports whether two assets of a sample have the ratio.
func (r ratio) Holds(first, other *chunk.Index) bool {
	return int64(first.Height)*int64(r.numY) == int64(other.Height)*int64(r.DenY) &&
		int64(first.Width)*int64(r.numX) == int64(other.Width)*int64(r.DenX)
}

// Scale returns the window in the field's own pixels.
func (r ratio) Scale(w shuffle.Box) shuffle.Box {
	return shuffle.Box{
		Y: w.Y * r.numY / r.DenY, X: w.X * r.numX / r.DenX,
		H: w.H * r.numY / r.DenY, W: w.W * r.numX / r.DenX,
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func Lcm(a, b int) int { return a / gcd(a, b) * b }
