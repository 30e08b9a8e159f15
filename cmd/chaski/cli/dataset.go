package cli

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/bench"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/stats"
)

// datasetFlags describe the batches of a dataset, for the commands that load some.
type datasetFlags struct {
	source    sourceFlags
	bands     []int
	layout    string
	dtype     string
	normalize string
	stats     string
	batch     int
	window    string
	perAsset  int
	shuffle   bool
	seed      uint64
	bad       string
	sampler   string
	stride    string
	weights   string
	perVisit  int
	pool      int64
	augment   string

	own pflag.FlagSet // the flags of these
}

func (f *datasetFlags) add(to *pflag.FlagSet, batch int, shuffle bool) {
	fl := &f.own
	f.source.add(fl)
	fl.IntSliceVar(&f.bands, "bands", nil, "bands of the first field, zero-based (default: all)")
	fl.IntVar(&f.batch, "batch", batch, "samples a batch")
	fl.StringVar(&f.window, "window", "", "`HxW`: random windows of so many pixels (default: the whole chip)")
	fl.IntVar(&f.perAsset, "per-asset", 0, "windows (tile_window: visits) an epoch takes from each asset (default 1; tile_window: its tiles)")
	fl.StringVar(&f.sampler, "sampler", "", "which windows: random_window, grid, resized_window, weighted_window or tile_window (default: random_window, with --window)")
	fl.StringVar(&f.stride, "stride", "", "`HxW`: steps of a grid (default: the window)")
	fl.StringVar(&f.weights, "weights", "", "`FILE` of 'chaski stats --sampling', for weighted_window")
	fl.IntVar(&f.perVisit, "per-visit", 0, "windows that a visit of tile_window takes of its tile (default 16)")
	fl.Int64Var(&f.pool, "pool-bytes", 0, "memory for the decoded tiles of a pool of tile_window (default 64 MiB)")
	fl.StringVar(&f.augment, "augment", "", "flip_x, flip_y, flips, rotations or d4")
	fl.BoolVar(&f.shuffle, "shuffle", shuffle, "shuffle the samples")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of order and windows")
	fl.StringVar(&f.bad, "bad-samples", loader.BadError, "what happens to samples that cannot be read: error, skip, replace or fill")
	to.AddFlagSet(fl)
}

// addArithmetic adds the flags that say what becomes of the samples.
func (f *datasetFlags) addArithmetic(to *pflag.FlagSet) {
	fl := &f.own
	fl.StringVar(&f.layout, "layout", "n b y x", "einops pattern of the first field")
	fl.StringVar(&f.dtype, "dtype", "float32", "dtype of the first field: native, float32, float16, bfloat16, uint8 or int64")
	fl.StringVar(&f.normalize, "normalize", "", "mean_std, min_max or percentile, from --stats (default: none)")
	fl.StringVar(&f.stats, "stats", "", "`FILE` with the JSON of 'chaski stats', or with lists \"mean\" and \"std\"")
	to.AddFlagSet(fl)
}

// specOf returns the spec in a file of JSON, such as Python's loader.spec, or makes that of a dataset and
// the flags.
func (f *datasetFlags) specOf(path string) (loader.Spec, error) {
	if !isSpec(path) {
		return f.spec(path)
	}
	return readSpec(path, &f.own)
}

// isSpec reports whether what a command was given in place of a dataset is a spec. A TACOLLECTION.json is a container.
func isSpec(path string) bool {
	return strings.EqualFold(filepath.Ext(path), ".json") && filepath.Base(path) != "TACOLLECTION.json"
}

// readSpec reads a spec. own are the flags that say what it says, which do not go with it.
func readSpec(path string, own *pflag.FlagSet) (loader.Spec, error) {
	if name := changed(own); name != "" {
		return loader.Spec{}, usagef("--%s is for a dataset; %s is a spec, which says that", name, path)
	}
	b, err := readWhole(context.Background(), path)
	if err != nil {
		return loader.Spec{}, fault.WithFile(err, path)
	}
	s, err := loader.ParseSpec(b)
	if err != nil {
		return s, fault.WithFile(fault.Wrap(fault.Corrupt, "spec", fault.NoOffset, err), path)
	}
	return s, nil
}

// changed returns the name of one of the flags that the command line has, or an empty one.
func changed(own *pflag.FlagSet) (name string) {
	own.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && name == "" {
			name = flag.Name
		}
	})
	return name
}

// spec makes the spec of a run. Its errors are of usage, or of the file of statistics.
func (f *datasetFlags) spec(dataset string) (loader.Spec, error) {
	s, err := f.source.spec(dataset)
	if err != nil {
		return s, err
	}
	s.BatchSize, s.Shuffle, s.Seed, s.BadSamples = f.batch, f.shuffle, f.seed, f.bad
	if f.window != "" {
		h, w, err := parsePair(f.window)
		if err != nil {
			return s, usagef("--window: %w", err)
		}
		s.Sampler = loader.Sampler{Kind: loader.RandomWindow, Height: h, Width: w}
	}
	if err := f.addSampler(&s.Sampler); err != nil {
		return s, err
	}
	s.Augment = f.augment
	if len(s.Fields) == 0 {
		s.Fields = []loader.Field{{Name: "image"}}
	}
	first := &s.Fields[0]
	first.Bands, first.DType, first.Layout = f.bands, f.dtype, f.layout
	if (f.normalize == "") != (f.stats == "") {
		return s, usagef("--normalize and --stats go together")
	}
	if f.normalize != "" {
		if err := oneOf("normalize", f.normalize, stats.MeanStd, stats.MinMax, stats.Percentile); err != nil {
			return s, err
		}
		if first.Normalize, err = bench.Normalization(f.stats, first.Name, f.normalize, f.bands); err != nil {
			return s, fileError(f.stats, err)
		}
	}
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		return s, wrongUsage(err)
	}
	return s, nil
}

// addSampler takes over the flags of samplers.
func (f *datasetFlags) addSampler(s *loader.Sampler) error {
	if f.sampler != "" {
		s.Kind = f.sampler
	}
	s.PerAsset, s.Weights, s.PerVisit, s.PoolBytes = f.perAsset, f.weights, f.perVisit, f.pool
	if f.stride == "" {
		return nil
	}
	h, w, err := parsePair(f.stride)
	if err != nil {
		return usagef("--stride: %w", err)
	}
	s.StrideY, s.StrideX = h, w
	return nil
}

// parseFields reads NAME, NAME=COLUMN and NAME=PATTERN.
func parseFields(list []string) ([]loader.Field, error) {
	var fields []loader.Field
	for _, text := range list {
		name, where, named := strings.Cut(text, "=")
		f := loader.Field{Name: name}
		switch {
		case name == "" || named && where == "":
			return nil, usagef("--field %q is not NAME=COLUMN or NAME=PATTERN", text)
		case strings.Contains(where, "{id}"):
			f.Pattern = where
		default:
			f.Column = where
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// parsePair reads "HxW" or "N", which is "NxN".
func parsePair(text string) (h, w int, err error) {
	a, b, two := strings.Cut(text, "x")
	if !two {
		b = a
	}
	h, err1 := strconv.Atoi(a)
	w, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || h < 1 || w < 1 || h > math.MaxInt32 || w > math.MaxInt32 {
		return 0, 0, fmt.Errorf("%q is not HxW in pixels", text)
	}
	return h, w, nil
}
