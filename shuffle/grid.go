package shuffle

import "fmt"

// Grid is the sampler of windows of H by W pixels at every StrideY rows and StrideX columns. Windows
// overlap if the stride is smaller than the window. Together they cover the asset.
type Grid struct {
	H, W             int
	StrideY, StrideX int
	// Corners are multiples of AlignY and AlignX: 1, or more if a coarser field needs it. Strides
	// must be multiples of them too.
	AlignY, AlignX int
	// Pad leaves the last windows of a side at their stride, so they reach past the edge.
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

func (g *Grid) compile(lf *leafDataset) (height, width int, err error) {
	lf.runs, lf.n = lf.Sampler.Runs, lf.Sampler.Runs.Len()
	if err = g.check(); err == nil && lf.Sampler.Windows != nil && int64(len(lf.Sampler.Windows)) != lf.n {
		err = fmt.Errorf("%d windows of a grid count, for %d samples", len(lf.Sampler.Windows), lf.n)
	}
	return g.H, g.W, err
}

func (g *Grid) window(_ *leafDataset, d Draw, height, width int, _ *Weights) (Box, bool) {
	return g.At(d.Sub, height, width), false
}
