package survey_test

import (
	"context"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
)

// extentOf returns the extent of Stats, or with weights of Weights.
func extentOf(ctx context.Context, s loader.Spec, o loader.Options, weights *survey.WeightOptions) (
	survey.Extent, error) {
	in, err := survey.OpenInputs(ctx, s, o, weights)
	if err != nil {
		return survey.Extent{}, err
	}
	return in.Extent, in.Close()
}
