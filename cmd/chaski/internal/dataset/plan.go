package dataset

import (
	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
)

type planFlags struct {
	run     flags.Run
	options dryrun.Options
	all     bool
	price   price
}

func NewPlan(env console.Env) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan [flags] SPEC.json|DATASET",
		Short: "Estimate requests, bytes and memory of a run before it starts",
		Long: `Estimate what an epoch of a run will cost. The command does a dry run over headers, tables and the
order; it reads no pixels. The run is a spec in JSON, such as Python's loader.spec, or a dataset with
the flags of 'chaski bench load'.

For an epoch (total), for the average step (mean) and for the largest step (most) it prints:

  rows      samples
  bad       samples among them that cannot be read
  opens     assets opened, once for each window
  requests  reads of pixels; neighbouring chunks are one read
  bytes     of these reads, with the gaps between the chunks of one read
  needed    chunks that windows touch, counted for each window
  chunks    chunks decoded: fewer than needed if windows of a pool share decoded tiles
  decoded   bytes of the decoded chunks

With --price-per-gb and --price-per-1000-requests it prints the cost of these bytes (1 GB is
10^9) and requests, over --epochs epochs like this one.

It also prints the largest memory use in bytes: batches, shared tiles, workers, headers and pages of tables.
It does not count the reading of headers that a catalog does not hold. A sample on which a run would end,
such as one smaller than the window, ends the command with the same error; with other policies of
--bad-samples bad samples are counted.

How exact the numbers are, which "exact" says:

  - They are exact if every step was examined and no sample is bad; for arrays, with one worker.
  - Bytes of points are an estimate where a window covers a tile of points only in part.
  - With shared tiles they hold for the first epoch of an engine. Requests and bytes are then exact for one
    worker, and decoded chunks for any number, as long as no tile has to make room for another ("evicted"):
    more memory would then save decoding.
  - If an epoch has more than --sample samples, a part of its steps ("examined") stands for all.
  - "loose" says that requests are an estimate, and bytes an upper bound: which values of points or of sparse
    fragments are read depends on their coordinates, and how much of a large strip on its compression.

With --world N the numbers are those of one rank of N that has its own engine.`,
		Example: `  chaski plan --batch 2 --window 64x64 --per-asset 4 chips/
  chaski plan --price-per-gb 0.09 --price-per-1000-requests 0.0004 --epochs 2 --batch 2 chips/
  chaski plan --json spec.json`,
		Args: console.ExactlyOne("SPEC.json or DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.do(cmd, env, args[0]) },
	}
	f.run.Add(cmd)
	fl := cmd.Flags()
	f.run.AddJSON(fl, "one line of JSON instead of YAML")
	fl.Uint64Var(&f.options.Epoch, "epoch", 0, "the epoch to examine")
	fl.IntVar(&f.options.Rank, "rank", 0, "the rank to count, from 0")
	console.CountVar(fl, &f.options.World, "world", 1, 1, "how many ranks share a step (1: one rank takes all rows)")
	console.CountVar(fl, &f.options.Prefetch, "prefetch", loader.DefaultPrefetch, 1, "batches prepared ahead")
	console.CountVar(fl, &f.options.Samples, "sample", dryrun.DefaultSamples, 1, "examine at most this many samples")
	f.price.add(fl)
	fl.BoolVar(&f.all, "all", false, "examine every sample, whatever their number")
	return cmd
}

// planReport is what plan prints.
type planReport struct {
	Spec    string `json:"spec"`
	Dataset string `json:"dataset"`
	// Fields describe the fields of a batch: kind, dtype and lengths, as found in the dataset.
	Fields []string `json:"fields"`
	*dryrun.Forecast
	Price       *priceReport `json:"price,omitempty"`
	MemoryTotal int64        `json:"memory_total"`
	Exact       bool         `json:"exact"`
}

func (f *planFlags) do(cmd *cobra.Command, env console.Env, path string) error {
	if err := console.FirstError(checkRank(f.options.Rank, f.options.World), f.price.check(cmd.Flags())); err != nil {
		return err
	}
	engine, closeAll, err := f.run.Open(cmd.Context(), env, path, nil)
	if err != nil {
		return err
	}
	defer closeAll()
	if f.all {
		f.options.Samples = -1
	}
	bar := console.NewBar(env.Err, "planning", -1)
	f.options.Progress = bar.Set
	forecast, err := engine.Forecast(cmd.Context(), f.options)
	bar.Done()
	if err != nil {
		return console.UsageUnlessFault(err)
	}
	r := planReport{Spec: engine.Hash(), Dataset: engine.Fingerprint(), Fields: fieldsOf(engine),
		Forecast: forecast,
		Price:    f.price.of(&forecast.Total), MemoryTotal: forecast.Memory.Total(), Exact: forecast.Exact()}
	return console.Print(env.Out, r, f.run.JSON)
}
