package shuffle

import "github.com/chaski-eo/chaski/internal/splitmix"

// Overlapping returns the window of a view that shares at least a part of the smaller window's area with another
// window, and whether there is one. Of each draw it takes the size, and one of the corners where the two windows meet,
// all equally likely; it takes the first one that shares enough. If none does, it lays the last one on the middle of
// the other.
func (pl *Plan) Overlapping(d *Draw, other Box, share float64, height, width int) (b Box, ok bool) {
	lf := &pl.leaves[d.Dataset]
	sampler := &lf.Views[d.View-1]
	for try := range overlapTries {
		b = lf.view(*d, height, width, try)
		seed := d.viewSeed(try)
		corner := func(n uint64, from, size, own, limit, align int) int {
			last := align * (corners(limit, own, align) - 1)
			low := min(roundUp(max(from-own+1, 0), align), last)
			high := max(min(from+size-1, last)/align*align, low)
			hash := splitmix.Hash(seed, domainWindow, d.Epoch, uint64(d.Position), n)
			return low + align*splitmix.Below(hash, (high-low)/align+1)
		}
		b.Y = corner(2, other.Y, other.H, b.H, height, sampler.AlignY)
		b.X = corner(3, other.X, other.W, b.W, width, sampler.AlignX)
		if Overlap(b, other) >= share {
			return b, true
		}
	}
	middle := func(from, size, own, limit, align int) int {
		last := align * (corners(limit, own, align) - 1)
		return min(max(from+(size-own)/2, 0)/align*align, last)
	}
	b.Y = middle(other.Y, other.H, b.H, height, sampler.AlignY)
	b.X = middle(other.X, other.W, b.W, width, sampler.AlignX)
	return b, Overlap(b, other) >= share
}

// roundUp returns the least multiple of align that is at least n.
func roundUp(n, align int) int { return (n + align - 1) / align * align }
