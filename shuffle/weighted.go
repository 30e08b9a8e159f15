package shuffle

import (
	"fmt"
	"math/bits"
	"sort"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// Weights is a coarse grid over an asset: cells of CellH by CellW pixels, row by row, Across of them in
// a row, with the running sum of their weights (valid pixels, or pixels of a class). A reader makes it
// from a sidecar file; NewWeights checks it.
type Weights struct {
	CellH, CellW int
	Across       int
	Sums         []uint64 // Sums[i] is the weight of the cells 0 to i
}

// NewWeights returns the weights of the cells of an asset of height by width pixels. sums is filled
// and kept if it has room, and allocated otherwise. It is an error if the cells are not as many as
// the asset has.
func NewWeights(weights []uint32, cellH, cellW, height, width int, sums []uint64) (Weights, error) {
	if cellH < 1 || cellW < 1 || height < 1 || width < 1 {
		return Weights{}, fmt.Errorf("cells of %d by %d pixels in %d by %d", cellH, cellW, height, width)
	}
	down, across := (height-1)/cellH+1, (width-1)/cellW+1
	if len(weights)%across != 0 || len(weights)/across != down {
		return Weights{}, fmt.Errorf("%d weights for %d by %d cells", len(weights), down, across)
	}
	sums, sum := sums[:0], uint64(0)
	for _, w := range weights {
		sum += uint64(w)
		sums = append(sums, sum)
	}
	return Weights{CellH: cellH, CellW: cellW, Across: across, Sums: sums}, nil
}

// Total returns the total weight.
func (w *Weights) Total() uint64 {
	if len(w.Sums) == 0 {
		return 0
	}
	return w.Sums[len(w.Sums)-1]
}

// Window returns a window that is drawn by weight: a cell by its weight, a pixel of the cell
// uniformly, and the window centred on this pixel, moved inside the asset, and up and left to the
// alignment. If the total weight is zero, it is the window of the function Window, and weighted is
// false.
func (w *Weights) Window(c Crop) (b Box, weighted bool) {
	total := w.Total()
	if total == 0 {
		return Window(c), false
	}
	hash := splitmix.Hash(c.Seed, domainWeighted, c.Epoch, uint64(c.Position))
	pos, _ := bits.Mul64(splitmix.Further(hash, 0), total)
	cell := sort.Search(len(w.Sums)-1, func(i int) bool { return w.Sums[i] > pos })
	return Box{
		Y: centred(cell/w.Across*w.CellH, w.CellH, splitmix.Further(hash, 1), c.Height, c.H, c.AlignY),
		X: centred(cell%w.Across*w.CellW, w.CellW, splitmix.Further(hash, 2), c.Width, c.W, c.AlignX),
		H: c.H, W: c.W,
	}, true
}

// centred returns the corner of a window of h centred on a pixel of a cell, on a side of size pixels.
func centred(start, cell int, hash uint64, size, h, align int) int {
	pixel := start + splitmix.Below(hash, max(min(cell, size-start), 1))
	return min(max(pixel-h/2, 0), max(size-h, 0)) / align * align
}
