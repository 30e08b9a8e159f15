package draw

import (
	"cmp"
	"image"
	"image/color"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/stats/shift"
)

// Colours of the edges of the second raster of a pair.
var (
	asIs  = color.NRGBA{0xFF, 0x2D, 0xD4, 255} // where they are
	moved = color.NRGBA{0x39, 0xFF, 0x14, 255} // where they belong
)

// Pair draws two rasters of one place on each other: the first one, with the edges of the other one where they are in
// magenta and, beside it, moved back by a shift in green. Without a shift there is only the first picture.
func Pair(first, other *shift.Raster, by *shift.Shift) *image.NRGBA {
	base, edges := backdrop(first), outline(other)
	pictures := []*image.NRGBA{base}
	if by != nil {
		pictures = append(pictures, &image.NRGBA{Pix: slices.Clone(base.Pix), Stride: base.Stride, Rect: base.Rect})
		trace(pictures[1], edges, int(math.Round(-by.Y)), int(math.Round(-by.X)), moved)
	}
	trace(base, edges, 0, 0, asIs)
	const gap = 4
	return Sheet(pictures, len(pictures), gap)
}

// backdrop draws the first three bands of a raster, or one, or its classes.
func backdrop(r *shift.Raster) *image.NRGBA {
	planes := make([]plane, min(len(r.Bands), 3))
	if len(planes) == 2 {
		planes = planes[:1]
	}
	for i := range planes {
		p := plane{h: r.Height, w: r.Width, v: make([]float64, r.Height*r.Width)}
		for k, v := range r.Bands[i] {
			p.v[k] = float64(v)
		}
		if r.Classes {
			return p.colour(func(v float64) color.NRGBA { return Category(int64(v)) })
		}
		p.stretch(2, 98)
		planes[i] = p
	}
	return compose(planes)
}

// outlined is the share of the pixels of an image that count as edges. A twelfth shows fields and coasts, and leaves
// the image below visible.
const outlined = 1.0 / 12

// outline returns which pixels of a raster lie at an edge: between two classes, or where the first band changes most.
func outline(r *shift.Raster) []bool {
	band, w := r.Bands[0], r.Width
	change := make([]float32, len(band))
	for i := range change {
		right, below := i, i
		if i%w < w-1 {
			right++
		}
		if i+w < len(band) {
			below += w
		}
		switch {
		case !r.Classes:
			change[i] = abs32(band[right]-band[i]) + abs32(band[below]-band[i])
		case band[right] != band[i] || band[below] != band[i]:
			change[i] = 1
		}
	}
	limit := float32(0)
	if !r.Classes {
		sorted := slices.Clone(change)
		slices.SortFunc(sorted, func(a, b float32) int { return cmp.Compare(a, b) }) // NaN first
		limit = sorted[int(float64(len(sorted)-1)*(1-outlined))]
	}
	edges := make([]bool, len(change))
	for i, c := range change {
		edges[i] = c > limit
	}
	return edges
}

func abs32(v float32) float32 { return max(v, -v) }

// trace draws edges on img, moved by dy and dx pixels.
func trace(img *image.NRGBA, edges []bool, dy, dx int, c color.NRGBA) {
	w := img.Rect.Dx()
	for i, edge := range edges {
		if p := (image.Point{i%w + dx, i/w + dy}); edge && p.In(img.Rect) {
			img.SetNRGBA(p.X, p.Y, c)
		}
	}
}
