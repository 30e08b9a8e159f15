package shuffle

import (
	"github.com/chaski-eo/chaski/internal/splitmix"
)

// Covers reports whether at most a share of a window has no data, in an asset of height by width pixels whose weights
// are its valid pixels. Of a cell that the window cuts, it takes the same share of the valid pixels as of the cell, so
// the answer is exact for windows of whole cells. Pixels past the edge of the asset have no data.
func (w *Weights) Covers(b Box, height, width int, most float64) bool {
	valid := 0.0
	bottom, right := min(b.Y+b.H, height), min(b.X+b.W, width)
	for cell := b.Y / w.CellH; cell*w.CellH < bottom; cell++ {
		valid += within(w.line(cell, b.X, right, width), cell, w.CellH, b.Y, bottom, height)
	}
	// The conversion prevents a fused multiply-add, which would round otherwise on some machines.
	area := float64(float64(b.H) * float64(b.W))
	return (area-valid)/area <= most
}

// line returns the weight of a row of cells from pixel from up to pixel to.
func (w *Weights) line(row, from, to, width int) float64 {
	sum := func(cell int) uint64 { // of the cells before this one
		if cell += row * w.Across; cell > 0 {
			return w.Sums[cell-1]
		}
		return 0
	}
	part := func(cell int) float64 {
		return within(float64(sum(cell+1)-sum(cell)), cell, w.CellW, from, to, width)
	}
	first, last := from/w.CellW, (to-1)/w.CellW
	if first == last {
		return part(first)
	}
	return part(first) + float64(sum(last)-sum(first+1)) + part(last)
}

// within returns how much of the weight of a cell, of size pixels along a side that ends at end, lies between two
// pixels of the side. The product comes first, so parts of a cell without nodata are exact.
func within(weight float64, cell, size, from, to, end int) float64 {
	low, high := cell*size, min((cell+1)*size, end)
	return weight * float64(min(to, high)-max(from, low)) / float64(high-low)
}

// coveredTries is how many random windows are drawn before one is taken from a list. Where one in ten windows counts,
// 3 % of the draws take one from the list.
const coveredTries = 32

// Covered returns a random window where at most a share has no data: the first that counts of coveredTries random
// windows, otherwise one of the windows of EachCovered. If no window counts, it is a random one.
func (w *Weights) Covered(c Crop, most float64) Box {
	for try := range uint64(coveredTries) {
		if b := randomWindow(c, try); w.Covers(b, c.Height, c.Width, most) {
			return b
		}
	}
	count := 0
	w.EachCovered(c, most, func(Box) bool { count++; return true })
	if count == 0 {
		return Window(c)
	}
	chosen := splitmix.Below(splitmix.Hash(c.Seed, domainWindow, c.Epoch, uint64(c.Position), 2*coveredTries), count)
	var out Box
	w.EachCovered(c, most, func(b Box) bool {
		out = b
		chosen--
		return chosen >= 0
	})
	return out
}

// EachCovered calls do with the windows at the corners of cells, and at the last corners of the asset, where at most
// a share has no data, row by row, until do returns false.
func (w *Weights) EachCovered(c Crop, most float64, do func(Box) bool) {
	lastY := c.AlignY * (corners(c.Height, c.H, c.AlignY) - 1)
	lastX := c.AlignX * (corners(c.Width, c.W, c.AlignX) - 1)
	for y := 0; ; y += w.CellH {
		for x := 0; ; x += w.CellW {
			b := Box{Y: min(y, lastY), X: min(x, lastX), H: c.H, W: c.W}
			if w.Covers(b, c.Height, c.Width, most) && !do(b) {
				return
			}
			if x >= lastX {
				break
			}
		}
		if y >= lastY {
			break
		}
	}
}
