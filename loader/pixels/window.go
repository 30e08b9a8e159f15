package pixels

import (
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/shuffle"
)

// Inside returns the part of window w, in pixels, that lies in an image of height by width pixels. With
// padding a window may reach past the image, or miss it: then Y0 >= Y1 or X0 >= X1.
func Inside(w shuffle.Box, height, width int) chunk.Box {
	return chunk.Box{
		Y0: min(max(w.Y, 0), height), Y1: max(min(w.Y+w.H, height), 0),
		X0: min(max(w.X, 0), width), X1: max(min(w.X+w.W, width), 0),
	}
}

// ratio is the size of a field's assets divided by the size of the first raster field's assets, one
// reduced fraction for each side. A length in pixels of the first field times num / den is the length
// in pixels of this field. Of whole chips without such a fraction it has the size of this field's instead.
type ratio struct {
	numY, DenY, numX, DenX int
	height, width          int // of whole rasters that share no grid with those of the first field; else 0
}

// maxRatio is the largest numerator or denominator of a ratio. Window sizes must be multiples of
// denominators, so a larger one would leave hardly a size to choose. 64 is 10 m beside 640 m pixels.
const maxRatio = 64

// NewRatio returns the ratio of two assets of one sample. It fails with kind unsupported if their sizes
// do not reduce to fractions of at most maxRatio: then they do not share a grid of pixels.
func NewRatio(first, other *chunk.Index) (ratio, error) {
	gy, gx := num.Common(first.Height, other.Height), num.Common(first.Width, other.Width)
	made := ratio{numY: other.Height / gy, DenY: first.Height / gy, numX: other.Width / gx, DenX: first.Width / gx}
	if max(made.numY, made.DenY, made.numX, made.DenX) > maxRatio {
		return made, fault.New(fault.Unsupported, "asset",
			"assets of %d by %d pixels do not share a grid with those of the first raster field, %d by %d: only whole "+
				"chips may have such sizes, without a window", other.Height, other.Width, first.Height, first.Width)
	}
	return made, nil
}

// WholeRatio is NewRatio of whole chips, which need no grid in common.
func WholeRatio(first, other *chunk.Index) ratio {
	if made, err := NewRatio(first, other); err == nil {
		return made
	}
	return ratio{numY: 1, DenY: 1, numX: 1, DenX: 1, height: other.Height, width: other.Width}
}

// commonRatio is the largest term of a ratio of resolutions that sensors have, unless the other term is 1: 3 of 10 m
// beside 15 m.
const commonRatio = 8

// ResizedRatio is NewRatio of whole rasters that become height by width pixels in the first field. Rasters whose sizes
// have no common ratio, as 1,000 beside 1,001 rows, become as many in this field, too.
func ResizedRatio(first, other *chunk.Index, height, width int) ratio {
	made, err := NewRatio(first, other)
	common := func(num, den int) bool { return min(num, den) == 1 || max(num, den) <= commonRatio }
	if err == nil && common(made.numY, made.DenY) && common(made.numX, made.DenX) {
		return made
	}
	return ratio{numY: 1, DenY: 1, numX: 1, DenX: 1, height: height, width: width}
}

// Resized returns the ratio for another size of whole rasters.
func (r ratio) Resized(height, width int) ratio {
	if r.Apart() {
		r.height, r.width = height, width
	}
	return r
}

// Apart reports whether the field shares no grid with the first one.
func (r ratio) Apart() bool { return r.height > 0 }

// Holds reports whether two assets of a sample have the ratio, compared exactly.
func (r ratio) Holds(first, other *chunk.Index) bool {
	if r.Apart() {
		return true
	}
	// The products need int64, because int has 32 bits on some machines.
	return int64(first.Height)*int64(r.numY) == int64(other.Height)*int64(r.DenY) &&
		int64(first.Width)*int64(r.numX) == int64(other.Width)*int64(r.DenX)
}

// Scale converts window w from pixels of the first raster field to pixels of this field. The division
// is exact if w is aligned to DenY and DenX.
func (r ratio) Scale(w shuffle.Box) shuffle.Box {
	if r.Apart() {
		return shuffle.Box{H: r.height, W: r.width}
	}
	return shuffle.Box{
		Y: w.Y * r.numY / r.DenY, X: w.X * r.numX / r.DenX,
		H: w.H * r.numY / r.DenY, W: w.W * r.numX / r.DenX,
	}
}

// First returns the size of an asset of the first raster field beside one of this field. It reports false if there is
// none.
func (r ratio) First(other *chunk.Index) (height, width int, ok bool) {
	if r.Apart() {
		return 0, 0, false
	}
	y, x := int64(other.Height)*int64(r.DenY), int64(other.Width)*int64(r.DenX)
	return int(y / int64(r.numY)), int(x / int64(r.numX)), y%int64(r.numY) == 0 && x%int64(r.numX) == 0
}

// Lcm returns the least common multiple of a and b, both at least 1.
func Lcm(a, b int) int { return a / num.Common(a, b) * b }

// BoundedBytes returns the product of factors, or -1 if it is over bound. Factors below 1 count as 1.
func BoundedBytes(bound int64, factors ...int) int64 {
	total := int64(1)
	for _, f := range factors {
		// A division, because the product would overflow with the sizes of a hostile file.
		if int64(f) > bound/total {
			return -1
		}
		total *= max(int64(f), 1)
	}
	return total
}

// Align64 rounds n up to a multiple of 64, the alignment of tensors in a batch.
func Align64(n int) int { return (n + 63) &^ 63 }

// OverMemory returns the error for a batch that is over the memory. each describes one row of it.
func OverMemory(part string, rows int, each string, bound int64) error {
	return fault.New(fault.Limit, part,
		"%d rows%s are over the %d bytes of batch memory: raise the memory, or take smaller batches", rows, each, bound)
}
