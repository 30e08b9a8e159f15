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
	window    string
	perAsset  int
	shuffle   bool
	Seed      uint64
	Bad       string
	sampler   string
	stride    string
	weights   string
	perVisit  int
	pool      int64
	augment   string
	ground    ground

	// Own has only these flags, so that a command can tell which of them a spec forbids.
	Own pflag.FlagSet
}

// Add adds the flags to a command. batch and shuffle are the defaults.
func (f *Dataset) Add(to *pflag.FlagSet, batch int, shuffle bool) {
	fl := &f.Own
	f.Source.Add(fl)
	f.bands.Add(fl)
	fl.IntVar(&f.Batch, "batch", batch, "samples in a batch")
	fl.StringVar(&f.window, "window", "", "`HxW`: draw random windows of this size in pixels (default: the whole chip)")
	fl.IntVar(&f.perAsset, "per-asset", 0,
		"windows that an epoch takes from each asset; visits for tile_window (default: 1; for tile_window its "+
			"number of tiles)")
	fl.StringVar(&f.sampler, "sampler", "",
		"how windows are chosen: chip, random_window, grid, resized_window, weighted_window, tile_window or "+
			"geo_window (default: chip, random_window if --window is set, geo_window if --geo-window is)")
	fl.StringVar(&f.stride, "stride", "", "`HxW`: distance between the windows of a grid (default: the window)")
	fl.StringVar(&f.weights, "weights", "", "`FILE` that 'chaski stats --sampling' wrote, for weighted_window")
	fl.IntVar(&f.perVisit, "per-visit", 0, "windows that tile_window takes from a tile on each visit (default: 16)")
	fl.Int64Var(&f.pool, "pool-bytes", 0,
		"memory for the decoded tiles of a pool of tile_window, in bytes (default: 64 MiB)")
	f.ground.add(fl)
	fl.StringVar(&f.augment, "augment", "",
		"random flips and rotations: flip_x, flip_y, flips, rotations or d4 (default: none)")
	fl.BoolVar(&f.shuffle, "shuffle", shuffle, "shuffle the samples")
	fl.Uint64Var(&f.Seed, "seed", 0, "seed of the order and the windows")
	fl.StringVar(&f.Bad, "bad-samples", spec.BadError,
		"what to do with samples that cannot be read: error, skip, replace or fill")
	to.AddFlagSet(fl)
}

// AddArithmetic adds the flags for the layout, dtype and normalisation of the first field.
func (f *Dataset) AddArithmetic(to *pflag.FlagSet) {
	fl := &f.Own
	fl.StringVar(&f.Layout, "layout", "",
		"einops pattern of the first field (default: n b y x, of sequences n t b y x)")
	fl.StringVar(&f.DType, "dtype", "float32",
		"dtype of the first field: native, float32, float16, bfloat16, uint8 or int64")
	fl.BoolVar(&f.clip, "clip", false, "let --dtype uint8 make 0 or 255 of pixels beyond it, in place of an error")
	fl.StringVar(&f.normalize, "normalize", "",
		"normalise with --stats: mean_std, min_max or percentile (default: none)")
	fl.StringVar(&f.stats, "stats", "",
		"`FILE` with the JSON of 'chaski stats', or with the lists \"mean\" and \"std\"")
	to.AddFlagSet(fl)
}

// SpecOf reads the spec at path if it is a JSON file, and otherwise makes one of the dataset at path
// and the flags.
func (f *Dataset) SpecOf(path string) (loader.Spec, error) {
	if !IsSpec(path) {
		return f.Spec(path)
	}
	return ReadSpec(path, &f.Own)
}

// Spec makes a spec of a dataset and the flags. Its errors are about the flags, or about the file of
// statistics.
func (f *Dataset) Spec(dataset string) (loader.Spec, error) {
	s, err := f.Source.Spec(dataset)
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return s, err
	}
	s.BatchSize, s.Shuffle, s.Seed, s.BadSamples = f.Batch, f.shuffle, f.Seed, f.Bad
	if f.window != "" {
		h, w, err := ParsePair(f.window)
		if err != nil {
			return s, console.Usagef("--window is %w", err)
		}
		s.Sampler = loader.Sampler{Kind: spec.RandomWindow, Height: h, Width: w}
	}
	if err := f.addSampler(&s.Sampler); err != nil {
		return s, err
	}
	s.Augment = f.augment
	if len(s.Fields) == 0 {
		s.Fields = []loader.Field{{Name: "image"}}
	}
	if s.Fields, err = f.bands.First(s.Fields); err != nil {
		return s, err
	}
	first := &s.Fields[0]
	first.DType, first.Layout, first.Clip = f.DType, f.Layout, f.clip
	switch {
	case f.normalize == "" && f.stats != "":
		return s, console.Usagef("--stats %s needs --normalize, which says how to use it", f.stats)
	case f.normalize != "" && f.stats == "":
		return s, console.Usagef("--normalize is %q: it needs --stats", f.normalize)
	}
	if f.normalize != "" {
		if err := console.OneOf("normalize", f.normalize, stats.MeanStd, stats.MinMax, stats.Percentile); err != nil {
			return s, err
		}
		if first.Normalize, err = bench.Normalization(f.stats, first, f.normalize); err != nil {
			return s, console.FileError(f.stats, err)
		}
	}
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		return s, console.WrongUsage(err)
	}
	return s, nil
}

// check checks the values of the flags. Spec.Validate would refuse them by the names of the spec's members.
func (f *Dataset) check() error {
	if err := console.AtLeast("batch", f.Batch, 1); err != nil {
		return err
	}
	for _, x := range []struct {
		flag, value string
		choices     []string
	}{
		{"bad-samples", f.Bad, spec.BadPolicies},
		{"sampler", f.sampler, spec.SamplerKinds},
		{"augment", f.augment, spec.Augments},
		{"dtype", f.DType, spec.RasterDTypes},
	} {
		if x.value != "" {
			if err := console.OneOf(x.flag, x.value, x.choices...); err != nil {
				return err
			}
		}
	}
	for _, x := range []struct {
		flag  string
		value int64
	}{{"per-asset", int64(f.perAsset)}, {"per-visit", int64(f.perVisit)}, {"pool-bytes", f.pool}} {
		if f.Own.Changed(x.flag) {
			if err := console.AtLeast(x.flag, x.value, 1); err != nil {
				return err
			}
		}
	}
	if f.clip && f.DType != "uint8" {
		return console.Usagef("--clip needs --dtype uint8")
	}
	return f.checkSampler()
}

// checkSampler checks that the flags of samplers stand beside the sampler that they are for.
func (f *Dataset) checkSampler() error {
	for _, x := range []struct {
		flag, kind string
		isSet      bool
	}{{"stride", spec.GridWindow, f.stride != ""}, {"weights", spec.WeightedWindow, f.weights != ""},
		{"per-visit", spec.TileWindow, f.Own.Changed("per-visit")},
		{"pool-bytes", spec.TileWindow, f.Own.Changed("pool-bytes")}} {
		if x.isSet && f.sampler != x.kind {
			return console.Usagef("--%s needs --sampler %s", x.flag, x.kind)
		}
	}
	switch f.sampler {
	case "", spec.WholeChip:
	case spec.GroundWindow:
		if f.ground.window == "" {
			return console.Usagef("--sampler %s needs --geo-window", f.sampler)
		}
	default:
		if f.window == "" {
			return console.Usagef("--sampler %s needs --window", f.sampler)
		}
	}
	return nil
}

// addSampler copies the flags of samplers to s.
func (f *Dataset) addSampler(s *loader.Sampler) error {
	if f.sampler != "" {
		s.Kind = f.sampler
	}
	s.PerAsset, s.Weights, s.PerVisit, s.PoolBytes = f.perAsset, f.weights, f.perVisit, f.pool
	if err := f.ground.sampler(s); err != nil {
		return err
	}
	if f.stride == "" {
		return nil
	}
	h, w, err := ParsePair(f.stride)
	if err != nil {
		return console.Usagef("--stride is %w", err)
	}
	s.StrideY, s.StrideX = h, w
	return nil
}
