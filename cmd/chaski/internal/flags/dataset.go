// Package flags has the flags that several commands share, and turns them into specs, filters and
// options.
package flags

import (
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/bench"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/stats"
)

// Dataset has the flags that describe the batches of a dataset.
type Dataset struct {
	Source    Source
	bands     Bands
	Layout    string
	DType     string
	clip      bool
	normalize string
	stats     string
	Batch     int
	shuffle   bool
	Seed      uint64
	Bad       string
	sampler   sampler
	augment   string

	// Own has only these flags. A command sees there which of them a spec forbids.
	Own pflag.FlagSet
}

// Add adds the flags to a command. batch and shuffle are the defaults.
func (f *Dataset) Add(to *pflag.FlagSet, batch int, shuffle bool) {
	defined := &f.Own
	f.Source.Add(defined)
	f.bands.Add(defined)
	console.CountVar(defined, &f.Batch, "batch", batch, 1)
	f.sampler.add(defined)
	console.ChoiceVar(defined, &f.augment, "augment", "", spec.Augments...)
	console.Var(defined, &f.shuffle, "shuffle", shuffle)
	console.Var(defined, &f.Seed, "seed", 0)
	console.ChoiceVar(defined, &f.Bad, "bad-samples", spec.BadError, spec.BadPolicies...)
	to.AddFlagSet(defined)
}

// AddArithmetic adds the flags for the layout, dtype and normalisation of the first field.
func (f *Dataset) AddArithmetic(to *pflag.FlagSet) {
	defined := &f.Own
	console.Var(defined, &f.Layout, "layout", "")
	console.ChoiceVar(defined, &f.DType, "dtype", "float32", spec.RasterDTypes...)
	console.Var(defined, &f.clip, "clip", false)
	console.ChoiceOrVar(defined, &f.normalize, "normalize", "", console.IsObject, stats.MeanStd, stats.MinMax,
		stats.Percentile)
	console.Var(defined, &f.stats, "stats", "")
	to.AddFlagSet(defined)
}

// Spec makes a spec of a dataset and the flags. Its errors are about the flags, or about the file of
// statistics.
func (f *Dataset) Spec(dataset string) (loader.Spec, error) {
	made, err := f.Source.Spec(dataset)
	if err != nil {
		return made, err
	}
	if f.clip && f.DType != "uint8" {
		return made, console.Usagef("--clip needs --dtype uint8")
	}
	made.BatchSize, made.Shuffle, made.Seed, made.BadSamples = f.Batch, f.shuffle, f.Seed, f.Bad
	if made.Sampler, err = f.sampler.sampler(); err != nil {
		return made, err
	}
	made.Augment = f.augment
	if len(made.Fields) == 0 {
		made.Fields = []loader.Field{{Name: "image"}}
	}
	if made.Fields, err = f.bands.First(made.Fields); err != nil {
		return made, err
	}
	first := &made.Fields[0]
	first.DType, first.Layout, first.Clip = f.DType, f.Layout, f.clip
	if err := f.normalization(first); err != nil {
		return made, err
	}
	made = made.WithDefaults()
	if err := made.Validate(); err != nil {
		return made, wrongSpec(err, &f.Own)
	}
	return made, nil
}

// normalization sets how a field is normalised.
func (f *Dataset) normalization(field *loader.Field) (err error) {
	numbers := console.IsObject(f.normalize)
	switch {
	case f.normalize == "" && f.stats == "":
	case f.normalize == "":
		return console.Usagef("--stats %s needs --normalize, which says how to use it", f.stats)
	case numbers && f.stats != "":
		return console.Usagef("--normalize is %s: it has its own numbers, without --stats", f.normalize)
	case numbers:
		if field.Normalize, err = spec.ParseNormalize([]byte(f.normalize)); err != nil {
			return console.Usagef("--%w", err)
		}
	case f.stats == "":
		return console.Usagef("--normalize is %q: it needs --stats", f.normalize)
	default:
		if field.Normalize, err = bench.Normalization(f.stats, field, f.normalize); err != nil {
			return console.FileError(f.stats, err)
		}
	}
	return nil
}
