package shuffle

import "github.com/chaski-eo/chaski/internal/splitmix"

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
	// The corner is a multiple of AlignY and AlignX, both at least 1, so it is also a corner of
	// pixels of fields with a coarser resolution.
	AlignY, AlignX int
}

// Window returns a random window. Every corner where it fits in the asset is equally likely (to
// within 2^-32). If the window does not fit along a side, its corner on that side is 0.
func Window(c Crop) Box { return randomWindow(c, 0) }

// randomWindow is Window for one try: each try draws a window of its own.
func randomWindow(c Crop, try uint64) Box {
	draw := func(n uint64) uint64 { return splitmix.Hash(c.Seed, domainWindow, c.Epoch, uint64(c.Position), n) }
	y := splitmix.Below(draw(2*try), corners(c.Height, c.H, c.AlignY))
	x := splitmix.Below(draw(2*try+1), corners(c.Width, c.W, c.AlignX))
	return Box{Y: c.AlignY * y, X: c.AlignX * x, H: c.H, W: c.W}
}

// maxSide bounds windows, tiles and strides, so a product of two is below 2^48 and leaves room in
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

// overlapTries bounds the draws of a window that must overlap the first one. Half of them succeed or more, unless the
// sizes hardly allow the overlap.
const overlapTries = 64

// Overlap returns the area that two windows share, as a part of the smaller one's.
func Overlap(a, b Box) float64 {
	h := min(a.Y+a.H, b.Y+b.H) - max(a.Y, b.Y)
	w := min(a.X+a.W, b.X+b.W) - max(a.X, b.X)
	if h <= 0 || w <= 0 {
		return 0
	}
	return float64(h*w) / float64(min(a.H*a.W, b.H*b.W))
}
