package raster

import (
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/ops/verify"
)

// pairsFlags are the flags of verify --pairs.
type pairsFlags struct {
	pairs   bool
	source  flags.Source
	options survey.PairOptions
	json    bool

	own  pflag.FlagSet // flags that need --pairs
	data pflag.FlagSet // of these, those that a spec excludes
}

func (f *pairsFlags) add(fl *pflag.FlagSet) {
	console.Var(fl, &f.pairs, "pairs", false)
	f.source.Add(&f.data)
	console.NumberVar(&f.own, &f.options.Worst, "worst", 20, 1, 10_000)
	console.Var(fl, &f.json, "json", false)
	f.own.AddFlagSet(&f.data)
	fl.AddFlagSet(&f.own)
}

func (f *pairsFlags) run(cmd *cobra.Command, env console.Env, paths []string, out string,
	o verify.Options) error {
	if len(paths) != 1 {
		return console.Usagef("there are %d paths: --pairs takes one dataset; put a glob in quotes", len(paths))
	}
	if cmd.Flags().Changed("max-faults") {
		return console.Usagef("--max-faults and --pairs exclude each other; see --worst")
	}
	if err := console.Between("workers", o.Workers, 0, flags.MaxWorkers); err != nil {
		return err
	}
	spec, err := flags.SpecOr(cmd.Context(), env.Files, paths[0], &f.data, f.source.Spec)
	if err != nil {
		return err
	}
	lo := loader.Options{Workers: o.Workers, MaxChunkBytes: o.MaxChunk, Opener: env.Files, SQL: env.SQL}
	bar := console.NewBar(env.Err, "comparing", -1)
	f.options.Progress = bar.Set
	report, err := survey.Pairs(cmd.Context(), spec, lo, f.options)
	bar.Done()
	if err != nil {
		return console.UsageUnlessFault(err)
	}
	err = console.WriteFile(out, env.Out, func(w io.Writer) error {
		return console.Print(w, report, f.json)
	})
	if err == nil && len(report.Worst) > 0 {
		err = report.Worst[0].Err()
	}
	return err
}
