package raster

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/ops/verify"
)

// datasetFlags are the flags of verify --pairs and verify --samples.
type datasetFlags struct {
	pairs, samples bool
	source         flags.Source
	json           bool

	own  pflag.FlagSet // flags that need --pairs or --samples
	data pflag.FlagSet // of these, those that a spec excludes
}

func (f *datasetFlags) add(fl *pflag.FlagSet) {
	console.Var(fl, &f.pairs, "pairs", false)
	console.Var(fl, &f.samples, "samples", false)
	f.source.Add(&f.data)
	console.Var(fl, &f.json, "json", false)
	f.own.AddFlagSet(&f.data)
	fl.AddFlagSet(&f.own)
}

func (f *datasetFlags) run(cmd *cobra.Command, env console.Env, paths []string, out string,
	o verify.Options) error {
	switch {
	case f.pairs && f.samples:
		return console.Usagef("--pairs and --samples exclude each other")
	case len(paths) != 1:
		return console.Usagef("there are %d paths: --pairs and --samples take one dataset; put a glob in quotes",
			len(paths))
	}
	if err := console.Between("workers", o.Workers, 0, flags.MaxWorkers); err != nil {
		return err
	}
	source, err := flags.SpecOr(cmd.Context(), env.Files, paths[0], loader.ParseSpec, &f.data, f.source.Spec)
	if err != nil {
		return err
	}
	lo := loader.Options{Workers: o.Workers, MaxChunkBytes: o.MaxChunk, Opener: env.Files}
	if f.samples {
		limit := loader.DefaultMaxBad
		if cmd.Flags().Changed("max-faults") {
			limit = o.MaxFaults
		}
		return badSamples(cmd.Context(), env, source, lo, out, limit)
	}
	bar := console.NewBar(env.Err, "comparing")
	report, err := survey.Pairs(cmd.Context(), source, lo,
		survey.PairOptions{MaxFaults: o.MaxFaults, Progress: bar.Set})
	bar.Done()
	if err != nil {
		return console.UsageUnlessFault(err)
	}
	err = env.WriteFile(cmd.Context(), out, func(w io.Writer) error {
		return console.Print(w, report, f.json)
	})
	return cmp.Or(err, report.Err())
}

// badSamples reads all samples of a run and writes a list of up to limit bad ones. The first of them is the error.
func badSamples(ctx context.Context, env console.Env, source loader.Spec, o loader.Options, out string,
	limit int) error {
	source.BatchSize = max(source.BatchSize, 1)
	source.BadSamples = spec.BadSkip // with the policy error, the first bad sample would end the check
	engine, err := loader.Open(ctx, source, o)
	if err != nil {
		return console.UsageUnlessFault(err)
	}
	defer engine.Close()
	bar := console.NewBar(env.Err, "reading")
	found, err := engine.Check(ctx, loader.CheckOptions{MaxBad: limit, Progress: bar.Set})
	bar.Done()
	if err != nil {
		return err
	}
	lines := make([]badSample, len(found.List))
	for i := range found.List {
		bad := &found.List[i]
		lines[i] = newBadSample(engine.Fingerprint(), bad.Err)
		lines[i].Source, lines[i].ID, lines[i].Row = bad.Source, bad.ID, &bad.Row
	}
	err = env.WriteFile(ctx, out, func(w io.Writer) error { return writeBadSamples(w, lines) })
	switch {
	case err != nil:
		return err
	case found.Bad > int64(len(lines)):
		return fault.New(fault.Limit, "list",
			"it ends after %d of the %d samples that cannot be read: --max-faults is its limit", len(lines), found.Bad)
	case len(lines) > 0:
		return found.List[0].Err
	}
	return nil
}
