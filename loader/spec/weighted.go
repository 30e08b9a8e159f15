package spec

import (
	"errors"

	"github.com/chaski-eo/chaski/shuffle"
)

// WeightedWindows are the members of a Sampler of kind "weighted_window": windows about pixels that count: valid
// pixels, or a class of a mask.
type WeightedWindows struct {
	// Weights is the path of the file by which "weighted_window" draws, as 'chaski stats --sampling' writes it. The
	// spec hash covers the content of the file, not its path.
	Weights string `json:"weights,omitempty" hash:"place"`
}

// WeightedWindow is the kind of samplers of windows that are drawn by weight.
const WeightedWindow = "weighted_window"

var weighted = samplerKind{
	name: WeightedWindow, sizes: true, members: func(s *Sampler) any { return &s.WeightedWindows },
	check: func(s *Sampler) error {
		if s.Weights == "" {
			return errors.New("weighted_window needs weights, a file of 'chaski stats --sampling'")
		}
		return nil
	},
	plan: fixed(shuffle.WeightedWindow{}), SamplerTraits: SamplerTraits{Shares: true},
}
