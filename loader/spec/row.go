package spec

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/shuffle"
)

// RowWindows are the members of a Sampler of kind "row_window": one window for each row, at the box that columns of the
// row hold. The order of samples is the order of whole chips.
type RowWindows struct {
	// BoxX is the column with the left edge of the box of "row_window", in pixels of the first raster field. Edges
	// between pixels move out to whole ones. Default "x".
	BoxX string `json:"box_x,omitempty"`
	// BoxY is the column with the top edge of the box. Default "y".
	BoxY string `json:"box_y,omitempty"`
	// BoxWidth is the column with the width of the box. Default "w".
	BoxWidth string `json:"box_width,omitempty"`
	// BoxHeight is the column with the height of the box. Default "h".
	BoxHeight string `json:"box_height,omitempty"`
	// Fit says how a box of "row_window" becomes a window of one size. "resize" (default) resamples the box by the
	// method of each field. "crop" takes the window about the middle of the box; it is moved inside the image unless
	// all raster fields pad. "pad" takes the same window, with padding in place of the pixels around the box; every
	// raster field must pad.
	Fit string `json:"fit,omitempty"`
}

// RowWindow is the kind of samplers of windows at the boxes that rows hold.
const RowWindow = "row_window"

// Values of RowWindows.Fit.
const (
	FitResize = "resize"
	FitCrop   = "crop"
	FitPad    = "pad"
)

var fits = []string{FitResize, FitCrop, FitPad}

var byRow = samplerKind{
	name: RowWindow, members: func(s *Sampler) any { return &s.RowWindows }, defaults: (*Sampler).fillRow,
	check: (*Sampler).checkRow, plan: fixed(shuffle.WholeChip{}), SamplerTraits: SamplerTraits{Resamples: true},
}

func (s *Sampler) fillRow() {
	s.BoxX, s.BoxY = cmp.Or(s.BoxX, "x"), cmp.Or(s.BoxY, "y")
	s.BoxWidth, s.BoxHeight = cmp.Or(s.BoxWidth, "w"), cmp.Or(s.BoxHeight, "h")
	s.Fit = cmp.Or(s.Fit, FitResize)
}

func (s *Sampler) checkRow() error {
	switch {
	case s.PerAsset != 1:
		return wrong("per_asset", s.PerAsset, "the kind is %q, and a row has one window", RowWindow)
	case !slices.Contains(fits, s.Fit):
		return wrong("fit", s.Fit, "it must be one of %s", strings.Join(fits, ", "))
	}
	return nil
}

// BoxColumns returns the columns with left, top, width and height of a row's box, or nil for other kinds.
func (s *Sampler) BoxColumns() []string {
	if s.Kind != RowWindow {
		return nil
	}
	return []string{s.BoxX, s.BoxY, s.BoxWidth, s.BoxHeight}
}
