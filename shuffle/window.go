package shuffle

import (
	"fmt"
	"math"
	"math/bits"
)

// Box is a window of an asset in pixels: the corner, and the size.
type Box struct {
	Y int `json:"y"`
	X int `json:"x"`
	H int `json:"h"`
	W int `json:"w"`
}

// Crop is the input of a random window: its size, its seed and the asset's size.
type Crop struct {
	Seed, Epoch   uint64
	Position      int64 // in the epoch
	Height, Width int   // of the asset, in pixels
	H, W          int   // of the window
	// The corner is a multiple of AlignY and AlignX, both at least 1, so that it is also a corner of
	// pixels of fields with a coarser resolution.
	AlignY, AlignX int
}

// Window returns a random window. Every corner where it fits in the asset is equally likely (to
// within 2^-32). If the window does not fit along a side, its corner on that side is 0.
func Window(c Crop) Box {
	y := Below(Hash(c.Seed, domainWindow, c.Epoch, uint64(c.Position), 0), max(c.Height-c.H, 0)/c.AlignY+1)
	x := Below(Hash(c.Seed, domainWindow, c.Epoch, uint64(c.Position), 1), max(c.Width-c.W, 0)/c.AlignX+1)
	return Box{Y: c.AlignY * y, X: c.AlignX * x, H: c.H, W: c.W}
}

// maxSide bounds windows, tiles and strides, so that a product of two is below 2^48 and leaves room in
// an int64 for a count of windows.
const maxSide = 1 << 24

// sides reports whether all lengths are in 1..maxSide.
func sides(lengths ...int) bool {
	for _, n := range lengths {
		if n < 1 || n > maxSide {
			return false
		}
	}
	return true
}

// corners returns how many corners, in steps of align, a window of size h has on a side of size
// pixels. A window that does not fit has one corner, 0.
func corners(size, h, align int) int { return max(size-h, 0)/align + 1 }

// Grid is the sampler of windows of H by W pixels at every StrideY rows and StrideX columns. Windows
// overlap if the stride is smaller than the window. Together they cover the asset.
type Grid struct {
	H, W             int
	StrideY, StrideX int
	// Corners are multiples of AlignY and AlignX: 1, or more if a coarser field needs it. Strides
	// must be multiples of them too.
	AlignY, AlignX int
	// Pad leaves the last windows of a side at their stride, so that they reach past the edge.
	// Without it they are moved inside.
	Pad bool
}

// Shape returns the numbers of windows down and across an asset of height by width pixels.
func (g *Grid) Shape(height, width int) (down, across int) {
	return g.side(height, g.H, g.StrideY, g.AlignY), g.side(width, g.W, g.StrideX, g.AlignX)
}

func (g *Grid) side(size, h, stride, align int) int {
	if g.Pad {
		return int(padded(int64(size), int64(h), int64(stride)))
	}
	return (align*(corners(size, h, align)-1)+stride-1)/stride + 1
}

// padded returns how many runs of h, one at every stride, cover a side of size. The last run may reach
// past the end but begins before it. The result is at least 1.
func padded(size, h, stride int64) int64 {
	return max(min((max(size-h, 0)+stride-1)/stride+1, (size+stride-1)/stride), 1)
}

// Count returns the number of windows in an asset of height by width pixels.
func (g *Grid) Count(height, width int) int64 {
	down, across := g.Shape(height, width)
	return int64(down) * int64(across)
}

// At returns window number j, which is below Count, of an asset of height by width pixels; windows are
// numbered row by row. Readers check the size of the asset first, because one that is smaller than the
// table says has fewer windows.
func (g *Grid) At(j int64, height, width int) Box {
	_, across := g.Shape(height, width)
	window := Box{Y: int(j/int64(across)) * g.StrideY, X: int(j%int64(across)) * g.StrideX, H: g.H, W: g.W}
	if !g.Pad {
		window.Y = min(window.Y, g.AlignY*(corners(height, g.H, g.AlignY)-1))
		window.X = min(window.X, g.AlignX*(corners(width, g.W, g.AlignX)-1))
	}
	return window
}

func (g *Grid) check() error {
	if !sides(g.H, g.W, g.AlignY, g.AlignX, g.StrideY, g.StrideX) || g.StrideY%g.AlignY != 0 ||
		g.StrideX%g.AlignX != 0 {
		return fmt.Errorf("a grid of windows of %d by %d pixels every %d by %d, aligned to %d by %d",
			g.H, g.W, g.StrideY, g.StrideX, g.AlignY, g.AlignX)
	}
	return nil
}

// Resized is the sampler of windows of random area and aspect, which a reader resamples to H by W
// pixels (the random resized crop of Szegedy et al., Going deeper with convolutions, 2015). The area
// is uniform in [Lo, Hi] times the area of the reference. The aspect, relative to H:W, is log-uniform in
// [1/Ratio, Ratio], in steps of 2^-16 of its logarithm. A window that does not fit is shrunk; it keeps
// its aspect.
type Resized struct {
	H, W   int
	Lo, Hi float64
	Ratio  float64 // at least 1
	// OfAsset makes the asset the reference; otherwise it is H by W pixels, so that the scale of
	// pixels does not depend on the asset.
	OfAsset        bool
	AlignY, AlignX int // sizes and corners are multiples of these
}

func (r *Resized) check() error {
	switch {
	case !sides(r.H, r.W, r.AlignY, r.AlignX):
		return fmt.Errorf("resized windows of %d by %d pixels, aligned to %d by %d", r.H, r.W, r.AlignY, r.AlignX)
	case !(r.Lo > 0) || !(r.Hi >= r.Lo) || !(r.Hi <= 1e6):
		return fmt.Errorf("scale is [%v, %v]: it must be [least, greatest], above 0 and at most 1000000", r.Lo, r.Hi)
	case r.OfAsset && r.Hi > 1:
		return fmt.Errorf("scale is [%v, %v]: relative to the raster, it must be at most 1", r.Lo, r.Hi)
	case !(r.Ratio >= 1) || !(r.Ratio <= 1e6):
		return fmt.Errorf("ratio is %v: it must be from 1 to 1000000", r.Ratio)
	}
	return nil
}

// At returns the window at position p of an epoch in an asset of height by width pixels. Every
// float64 operation is rounded by itself (IEEE 754, nearest even, none fused), so that the result
// is the same anywhere.
func (r *Resized) At(seed, epoch uint64, p int64, height, width int) Box {
	h, w := r.size(Hash(seed, domainResized, epoch, uint64(p)), height, width)
	return Window(Crop{
		Seed: seed, Epoch: epoch, Position: p,
		Height: height, Width: width, H: h, W: w, AlignY: r.AlignY, AlignX: r.AlignX,
	})
}

func (r *Resized) size(hash uint64, height, width int) (h, w int) {
	area := float64(r.H) * float64(r.W)
	if r.OfAsset {
		area = float64(height) * float64(width)
	}
	share := float64(further(hash, 0)>>11) * 0x1p-53
	share = r.Lo + float64(float64(r.Hi-r.Lo)*share)
	area = float64(area * share)
	q := aspect(further(hash, 1), r.Ratio)
	tall, wide := float64(r.H)/float64(r.W), float64(r.W)/float64(r.H)
	h = roundTo(math.Sqrt(float64(float64(area*tall)*q)), r.AlignY)
	w = roundTo(math.Sqrt(float64(float64(area*wide)/q)), r.AlignX)
	if tallest := r.AlignY * max(height/r.AlignY, 1); h > tallest {
		h, w = tallest, shrink(w, tallest, h, r.AlignX)
	}
	if widest := r.AlignX * max(width/r.AlignX, 1); w > widest {
		h, w = shrink(h, widest, w, r.AlignY), widest
	}
	return h, w
}

// aspect returns ratio^u, with u in (-1, 1) in steps of 2^-16. It takes square roots and products only,
// because every machine rounds these alike, which is not so for pow.
func aspect(hash uint64, ratio float64) float64 {
	q := 1.0
	for i := 63; i >= 48; i-- {
		ratio = math.Sqrt(ratio)
		if hash>>i&1 == 1 {
			q = float64(q * ratio)
		}
	}
	if hash&1 == 1 {
		q = 1 / q
	}
	return q
}

// roundTo returns the multiple of align nearest to v, at least align.
func roundTo(v float64, align int) int {
	return align * int(max(math.Floor(float64(v/float64(align))+0.5), 1))
}

// shrink returns floor(v*num/den), rounded down to a multiple of align but at least align.
func shrink(v, num, den, align int) int {
	hi, lo := bits.Mul64(uint64(v), uint64(num))
	q, _ := bits.Div64(hi, lo, uint64(den)) // num < den, so the quotient is below v
	return align * max(int(q)/align, 1)
}

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
	hash := Hash(c.Seed, domainWeighted, c.Epoch, uint64(c.Position))
	pos, _ := bits.Mul64(further(hash, 0), total)
	cell := search(w.Sums, pos)
	return Box{
		Y: centred(cell/w.Across*w.CellH, w.CellH, further(hash, 1), c.Height, c.H, c.AlignY),
		X: centred(cell%w.Across*w.CellW, w.CellW, further(hash, 2), c.Width, c.W, c.AlignX),
		H: c.H, W: c.W,
	}, true
}

// search returns the first index whose sum is greater than at.
func search(sums []uint64, at uint64) int {
	lo, hi := 0, len(sums)-1
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); sums[mid] > at {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// centred returns the corner of a window of h centred on a pixel of a cell, on a side of size pixels.
func centred(start, cell int, hash uint64, size, h, align int) int {
	pixel := start + Below(hash, max(min(cell, size-start), 1))
	return min(max(pixel-h/2, 0), max(size-h, 0)) / align * align
}

// Visits is the tile-aware sampler: an item is visited several times, and every visit reads PerVisit
// windows of H by W pixels whose corners are in one tile of TileH by TileW pixels. A window no larger
// than a tile then touches two tiles per side at most, and all windows of a visit the same four; see
// Chunks for windows of any size.
//
// The visits of an item are spread evenly over its tiles (systematic sampling in proportion to the
// corners of a tile). So over an epoch every corner is exactly as likely as with RandomWindow; the
// only difference is that windows of one visit are neighbours.
type Visits struct {
	H, W           int
	TileH, TileW   int // multiples of the alignment
	PerVisit       int // windows of a visit
	Pool           int // visits that are shuffled together, see Plan.PoolOf
	AlignY, AlignX int
}

func (v *Visits) check() error {
	if !sides(v.H, v.W, v.AlignY, v.AlignX, v.TileH, v.TileW, v.PerVisit, v.Pool) ||
		v.TileH%v.AlignY != 0 || v.TileW%v.AlignX != 0 {
		return fmt.Errorf("visits of %d windows of %d by %d pixels in tiles of %d by %d, "+
			"aligned to %d by %d, in pools of %d",
			v.PerVisit, v.H, v.W, v.TileH, v.TileW, v.AlignY, v.AlignX, v.Pool)
	}
	return nil
}

// PoolLen returns the positions of a pool; an epoch's last pool may be shorter.
func (v *Visits) PoolLen() int64 { return int64(v.PerVisit) * int64(v.Pool) }

// PoolOf returns the pool of position p of an epoch of the dataset.
func (v *Visits) PoolOf(p int64) int64 { return p / v.PoolLen() }

// Chunks returns the largest number of rows and of columns of tiles that the windows of a visit touch.
func (v *Visits) Chunks() (down, across int) {
	return (v.TileH-v.AlignY+v.H-1)/v.TileH + 1, (v.TileW-v.AlignX+v.W-1)/v.TileW + 1
}

// PoolWithin returns the largest pool, at least 1, whose decoded tiles fit in a quota of bytes, if a
// tile of all fields takes tileBytes. Callers allow for two pools in memory at a time: one that ends
// and one that begins.
func (v *Visits) PoolWithin(quota, tileBytes int64) int {
	down, across := v.Chunks()
	return int(min(max(quota/max(tileBytes, 1)/int64(down)/int64(across), 1), maxSide))
}

// Tiles returns in how many tiles of an asset of height by width pixels a corner may lie. That many
// visits read about every tile once per epoch.
func (v *Visits) Tiles(height, width int) int64 {
	down := (corners(height, v.H, v.AlignY)-1)/(v.TileH/v.AlignY) + 1
	across := (corners(width, v.W, v.AlignX)-1)/(v.TileW/v.AlignX) + 1
	return int64(down) * int64(across)
}

// Tile returns the row and column of the tile that one visit of an item reads. visit is its number
// among the visits of the item, an asset of height by width pixels.
func (v *Visits) Tile(seed, epoch uint64, item, visit, visits int64, height, width int) (ty, tx int) {
	cy, cx := int64(corners(height, v.H, v.AlignY)), int64(corners(width, v.W, v.AlignX))
	th, tw := int64(v.TileH/v.AlignY), int64(v.TileW/v.AlignX)
	total := cy * cx
	start := below(Hash(seed, domainVisit, epoch, uint64(item)), total)
	// floor((visit*total + start) / visits), which is below total. The product needs 128 bits, because
	// total alone may have 62.
	hi, lo := bits.Mul64(uint64(visit), uint64(total))
	lo, carry := bits.Add64(lo, uint64(start), 0)
	pos, _ := bits.Div64(hi+carry, lo, uint64(visits))
	// Tiles are laid end to end, each as long as the number of its corners, so that a tile cut by the
	// edge is drawn less often. All rows of tiles but the last are th high.
	row := int64(pos) / (th * cx)
	inRow := int64(pos) - row*th*cx
	return int(row), int(inRow / (min(th, cy-row*th) * tw))
}

// At returns the window of a sample of an epoch, in the tile of its visit.
func (v *Visits) At(seed, epoch uint64, sample int64, ty, tx, height, width int) Box {
	hash := Hash(seed, domainCorner, epoch, uint64(sample))
	return Box{
		Y: corner(further(hash, 0), ty, v.TileH, height, v.H, v.AlignY),
		X: corner(further(hash, 1), tx, v.TileW, width, v.W, v.AlignX),
		H: v.H, W: v.W,
	}
}

// corner returns a corner in tile t on a side of size pixels, each equally likely.
func corner(hash uint64, t, tile, size, h, align int) int {
	first := t * (tile / align)
	return align * (first + Below(hash, max(min(tile/align, corners(size, h, align)-first), 1)))
}
