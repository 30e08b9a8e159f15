package spec

import (
	"cmp"
	"errors"

	"github.com/chaski-eo/chaski/shuffle"
)

// GridWindows are the members of a Sampler of kind "grid": windows side by side, or overlapping, which together cover
// every asset.
type GridWindows struct {
	// Stride is the distance from window to window of "grid" in pixels. Default: the size less Overlap. It is StrideY
	// and StrideX in one.
	Stride *Pair `json:"stride,omitempty"`
	// Overlap is the number of pixels that neighbours of "grid" share, in place of a stride.
	Overlap Pair `json:"overlap,omitzero"`
	// StrideY and StrideX are the distances between windows of "grid" in pixels. Default: the sides
	// of the window, so windows do not overlap.
	StrideY int `json:"stride_y,omitempty"`
	StrideX int `json:"stride_x,omitempty"`
	// Pad leaves the last windows of "grid" at their stride, so they reach past the edge;
	// every raster field must pad. Without it they are moved inside.
	Pad bool `json:"pad,omitempty"`
}

// GridWindow is the kind of samplers of the windows of a grid.
const GridWindow = "grid"

var grid = samplerKind{
	name: GridWindow, members: func(s *Sampler) any { return &s.GridWindows }, counts: true, limited: true,
	defaults: (*Sampler).fillGrid, check: (*Sampler).checkGrid, plan: (*Sampler).planGrid,
	SamplerTraits: SamplerTraits{Shares: true, DropsWindows: true},
}

func (s *Sampler) fillGrid() {
	sides(&s.Stride, &s.StrideY, &s.StrideX)
	if s.StrideY == 0 && s.StrideX == 0 && s.Stride == nil {
		y, x := s.Height-s.Overlap[0], s.Width-s.Overlap[1]
		if min(y, x) > 0 && min(s.Overlap[0], s.Overlap[1]) >= 0 {
			s.StrideY, s.StrideX, s.Overlap = y, x, Pair{}
		}
	}
	s.StrideY, s.StrideX = cmp.Or(s.StrideY, s.Height), cmp.Or(s.StrideX, s.Width)
}

func (s *Sampler) checkGrid() error {
	switch {
	case s.PerAsset != 0:
		return errors.New("per_asset is for random windows: a grid has as many as there are")
	case s.Overlap == Pair{}:
		return checkPair("stride", s.Stride)
	case s.Stride != nil || s.StrideY != s.Height || s.StrideX != s.Width:
		return errors.New("a grid has a stride or an overlap, not both")
	}
	return wrong("overlap", s.Overlap, "it must be from 0 to less than the size, %v; with gaps between "+
		"windows, give a stride", Pair{s.Height, s.Width})
}

func (s *Sampler) planGrid(alignY, alignX int) shuffle.Kind {
	return &shuffle.Grid{H: s.Height, W: s.Width, StrideY: s.StrideY, StrideX: s.StrideX, Pad: s.Pad, AlignY: alignY,
		AlignX: alignX}
}
