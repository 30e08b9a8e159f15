package spec

import (
	"cmp"
	"fmt"

	"github.com/chaski-eo/chaski/shuffle"
)

// ResizedWindows are the members of a Sampler of kind "resized_window": windows of random area and aspect, or whole
// assets, resampled to one size, as Field.Resample says.
type ResizedWindows struct {
	// Scale is the least and greatest area of the window of "resized_window", relative to the size or, with OfAsset,
	// to the asset. Default: 0.5 to 2, or with OfAsset 0.08 to 1. It is ScaleMin and ScaleMax in one.
	Scale *[2]float64 `json:"scale,omitempty"`
	// ScaleMin and ScaleMax bound the area of the window of "resized_window", relative to Height by
	// Width pixels or, with OfAsset, to the asset. Default: 0.5 to 2, or with OfAsset 0.08 to 1.
	ScaleMin float64 `json:"scale_min,omitempty"`
	ScaleMax float64 `json:"scale_max,omitempty"`
	// Ratio bounds the aspect of the window of "resized_window", relative to the aspect of the result:
	// from 1/Ratio to Ratio. Default 4/3.
	Ratio float64 `json:"ratio,omitempty"`
	// OfAsset makes Scale of "resized_window" relative to the area of the asset.
	OfAsset bool `json:"of_asset,omitempty"`
	// Whole makes the window of "resized_window" the whole asset, so assets of any size become tensors of one
	// size. Scale, Ratio, OfAsset and PerAsset are not for it.
	Whole bool `json:"whole,omitempty"`
}

// ResizedWindow is the kind of samplers of windows of random area and aspect.
const ResizedWindow = "resized_window"

// defaultRatio is the default of ResizedWindows.Ratio.
const defaultRatio = 4. / 3

var resized = samplerKind{
	name: ResizedWindow, sizes: true, members: func(s *Sampler) any { return &s.ResizedWindows },
	defaults: (*Sampler).fillResized, check: (*Sampler).checkResized,
	plan: func(s *Sampler, alignY, alignX int) shuffle.Kind {
		if s.Whole {
			return shuffle.WholeChip{}
		}
		return s.resized(alignY, alignX)
	},
	view: true, SamplerTraits: SamplerTraits{Resamples: true, Shares: true},
}

func (s *Sampler) fillResized() {
	if p := s.Scale; p != nil && s.ScaleMin == 0 && s.ScaleMax == 0 && min(p[0], p[1]) > 0 {
		s.ScaleMin, s.ScaleMax, s.Scale = p[0], p[1], nil
	}
	s.Ratio = cmp.Or(s.Ratio, defaultRatio)
	if s.ScaleMin == 0 && s.ScaleMax == 0 && s.Scale == nil && !s.Whole {
		s.ScaleMin, s.ScaleMax = 0.5, 2
		if s.OfAsset {
			s.ScaleMin, s.ScaleMax = 0.08, 1
		}
	}
}

func (s *Sampler) checkResized() error {
	if s.Whole {
		return s.checkWhole()
	}
	switch {
	case s.Scale != nil && min(s.Scale[0], s.Scale[1]) <= 0:
		return wrong("scale", *s.Scale, "both must be above 0")
	case s.Scale != nil:
		return fmt.Errorf("scale is [%v,%v], and scale_min or scale_max is given beside it", s.Scale[0], s.Scale[1])
	}
	switch number, rule := s.resized(1, 1).Wrong(); number {
	case "scale":
		return wrong(number, [2]float64{s.ScaleMin, s.ScaleMax}, "%s", rule)
	case "ratio":
		return wrong(number, s.Ratio, "%s", rule)
	}
	return nil
}

// checkWhole refuses members that have no effect on windows of whole assets.
func (s *Sampler) checkWhole() error {
	const rule = "whole is given, and the window is the whole raster"
	switch {
	case s.Scale != nil:
		return wrong("scale", *s.Scale, rule)
	case s.ScaleMin != 0 || s.ScaleMax != 0:
		return wrong("scale", [2]float64{s.ScaleMin, s.ScaleMax}, rule)
	case s.Ratio != defaultRatio:
		return wrong("ratio", s.Ratio, rule)
	case s.OfAsset:
		return wrong("of_asset", s.OfAsset, rule)
	case s.PerAsset != 1:
		return wrong("per_asset", s.PerAsset, rule)
	}
	return nil
}

func (s *Sampler) resized(alignY, alignX int) *shuffle.Resized {
	return &shuffle.Resized{H: s.Height, W: s.Width, Lo: s.ScaleMin, Hi: s.ScaleMax, Ratio: s.Ratio,
		OfAsset: s.OfAsset, AlignY: alignY, AlignX: alignX}
}
