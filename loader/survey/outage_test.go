package survey_test

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/outage"
)

// TestOutages: whichever read of a survey fails, the survey ends with that error or finds the same without it, whatever
// its policy for bad samples.
func TestOutages(t *testing.T) {
	data := corpus.Testdata(t)
	options := func(files source.Opener) loader.Options { return loader.Options{Opener: files, Workers: 1} }
	named := func(found any, err error) (any, error) { // the error is no fault of a sample
		if err != nil && !errors.Is(err, outage.Err) {
			t.Error(err)
		}
		return found, err
	}
	s := loader.Spec{Source: filepath.Join(data, "masks"), BatchSize: 1, BadSamples: spec.BadSkip,
		Fields: []loader.Field{{Name: "image", Bands: []int{0}}}}
	outage.Each(t, "statistics", func(files source.Opener) (any, error) {
		return named(survey.Stats(t.Context(), s, options(files), nil))
	})
	described := t.TempDir()
	for _, name := range []string{"1.tif", "2.tif"} {
		writeDescribed(t, filepath.Join(described, name), []string{"a", "b"}, 1, 2)
	}
	byName := loader.Spec{Source: described, BadSamples: spec.BadSkip,
		Fields: []loader.Field{{Name: "image", BandNames: []string{"b"}}}}
	outage.Each(t, "statistics by names", func(files source.Opener) (any, error) {
		return named(survey.Stats(t.Context(), byName, options(files), nil))
	})
	outage.Each(t, "weights by names", func(files source.Opener) (any, error) {
		o, all := options(files), survey.WeightOptions{}
		return named(nil, survey.Weights(t.Context(), io.Discard, byName, o, all, nil, nil))
	})
	container := loader.Spec{Source: filepath.Join(data, "coast", "coast.tacozip"), BadSamples: spec.BadSkip,
		Take: 2, Fields: []loader.Field{{Name: "image", Column: "s2/img.tif"}}}
	outage.Each(t, "statistics of a container", func(files source.Opener) (any, error) {
		return named(survey.Stats(t.Context(), container, options(files), nil))
	})
	outage.Each(t, "weights", func(files source.Opener) (any, error) {
		return named(nil, survey.Weights(t.Context(), io.Discard, s, options(files), survey.WeightOptions{}, nil, nil))
	})
	for _, name := range []string{"alpha/rgba.tif", "beside/pam.tif", "beside/mask.tif", "beside/world.png",
		"extras/scaled.tif", "overviews/both.tif", "vrt/masked.vrt", "raster/rumi-3/unit-t-b-y-x-0.rumi",
		"tiledb/cube"} {
		outage.Each(t, name, func(files source.Opener) (any, error) {
			return named(survey.Describe(t.Context(), filepath.Join(data, name), nil, options(files)))
		})
	}
}
