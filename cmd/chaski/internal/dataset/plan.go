package dataset

import (
	"fmt"
	"strings"

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

For an epoch, for the average step and for the largest step it prints:

  opens           assets opened, once for each window
  requests        reads of pixels; neighbouring chunks are one read
  read            bytes of these reads, with the gaps between the chunks of one read
  chunks needed   chunks that windows touch, counted for each window
  chunks decoded  chunks decoded: fewer than needed if windows of a pool share decoded tiles
  decoded         bytes of the decoded chunks

With --price-per-gb and --price-per-1000-requests it prints the cost of these bytes (1 GB is
10^9) and requests, over --epochs epochs like this one.

It also prints the largest memory use: batches, shared tiles, workers, headers and pages of tables. It does
not count the reading of headers that a catalog does not hold. A sample on which a run would end, such as
one smaller than the window, ends the command with the same error; with other policies of --bad-samples
bad samples are counted.

How exact the numbers are:

  - They are exact if every step was examined and no sample is bad; for arrays, with one worker.
  - Bytes of points are an estimate where a window covers a tile of points only in part.
  - With shared tiles they hold for the first epoch of an engine. Requests and bytes are then exact for one
    worker, and decoded chunks for any number, as long as no tile has to make room for another.
  - If an epoch has more than --sample samples, a part of its steps stands for all.

With --world N the numbers are those of one rank of N that has its own engine.`,
		Example: `  chaski plan --batch 2 --window 64x64 --per-asset 4 chips/
  chaski plan --price-per-gb 0.09 --price-per-1000-requests 0.0004 --epochs 2 --batch 2 chips/
  chaski plan --json spec.json`,
		Args: console.ExactlyOne("SPEC.json or DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.do(cmd, env, args[0]) },
	}
	f.run.Add(cmd)
	fl := cmd.Flags()
	f.run.AddJSON(fl, "one line of JSON instead of a table")
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
	r := planReport{Spec: engine.Hash(), Dataset: engine.Fingerprint(), Fields: fieldStrings(engine.Fields()),
		Forecast: forecast,
		Price:    f.price.of(&forecast.Total), MemoryTotal: forecast.Memory.Total(), Exact: forecast.Exact()}
	if f.run.JSON {
		return console.PrintJSON(env.Out, r)
	}
	return r.print(env, engine.Spec())
}

func (r *planReport) print(env console.Env, spec loader.Spec) error {
	fmt.Fprintf(env.Out, "spec %s of dataset %s\nepoch %d: %d samples, %d steps of %d", r.Spec, r.Dataset, r.Epoch,
		r.Samples, r.Steps, spec.BatchSize)
	if r.World > 1 {
		fmt.Fprintf(env.Out, "; rank %d of %d", r.Rank, r.World)
	}
	fmt.Fprintf(env.Out, "\n%s\n\n", "fields: "+strings.Join(r.Fields, "; "))
	if err := console.WriteTable(env.Out, r.work()); err != nil {
		return err
	}
	if len(r.Sources) > 1 {
		fmt.Fprintln(env.Out)
		if err := console.WriteTable(env.Out, r.sources()); err != nil {
			return err
		}
	}
	if r.Price != nil {
		fmt.Fprintln(env.Out)
		if err := console.WriteTable(env.Out, r.Price.table()); err != nil {
			return err
		}
	}
	fmt.Fprintln(env.Out)
	if err := console.WriteTable(env.Out, r.memory()); err != nil {
		return err
	}
	fmt.Fprintln(env.Out)
	for _, n := range r.notes() {
		fmt.Fprintln(env.Out, n)
	}
	return nil
}

func (r *planReport) work() [][]string {
	rows := [][]string{{"", "epoch", "average step", "largest step"}}
	line := func(name string, of func(w *dryrun.Work) string) {
		rows = append(rows, []string{name, of(&r.Total), of(&r.Mean), of(&r.Most)})
	}
	count := func(n int64) string { return fmt.Sprint(n) }
	line("samples", func(w *dryrun.Work) string { return count(w.Rows) })
	if r.Total.Bad > 0 {
		line("bad samples", func(w *dryrun.Work) string { return count(w.Bad) })
	}
	line("opens", func(w *dryrun.Work) string { return count(w.Opens) })
	line("requests", func(w *dryrun.Work) string { return count(w.Requests) })
	line("read", func(w *dryrun.Work) string { return console.DecimalSize(w.Bytes) })
	line("chunks needed", func(w *dryrun.Work) string { return count(w.Needed) })
	line("chunks decoded", func(w *dryrun.Work) string { return count(w.Chunks) })
	line("decoded", func(w *dryrun.Work) string { return console.DecimalSize(w.Decoded) })
	return rows
}

func (r *planReport) sources() [][]string {
	rows := [][]string{{"source", "samples", "bad", "requests", "read", "chunks decoded", "decoded"}}
	for i := range r.Sources {
		w := &r.Sources[i]
		rows = append(rows, []string{console.OneLine(w.Name), fmt.Sprint(w.Rows), fmt.Sprint(w.Bad),
			fmt.Sprint(w.Requests), console.DecimalSize(w.Bytes), fmt.Sprint(w.Chunks), console.DecimalSize(w.Decoded)})
	}
	return rows
}

func (r *planReport) memory() [][]string {
	memory := &r.Memory
	rows := [][]string{
		{"memory at most", "each", "number", "total"},
		{"batches", console.DecimalSize(memory.Batch), fmt.Sprint(memory.Batches),
			console.DecimalSize(memory.Batch * int64(memory.Batches))},
	}
	if memory.Tiles > 0 {
		rows = append(rows, []string{"shared tiles", "", "", console.DecimalSize(memory.Tiles)})
	}
	return append(rows,
		[]string{"workers", console.DecimalSize(memory.Worker), fmt.Sprint(memory.Workers),
			console.DecimalSize(memory.Worker * int64(memory.Workers))},
		[]string{"headers, tables", "", "", console.DecimalSize(memory.Catalog)},
		[]string{"sum", "", "", console.DecimalSize(memory.Total())})
}

func (r *planReport) notes() (out []string) {
	switch {
	case r.Examined < r.Steps:
		out = append(out, fmt.Sprintf("estimated from %d of %d steps; --all examines every step", r.Examined, r.Steps))
	case r.Exact:
		out = append(out, "exact: every step was examined")
	}
	if r.Evicted > 0 {
		out = append(out, fmt.Sprintf("%d tiles have to make room for others: the numbers hold for one worker, "+
			"and more memory would save decoding", r.Evicted))
	}
	if r.Loose {
		out = append(out, "which values of points or sparse fragments are read depends on their coordinates, and how "+
			"much of a large strip on its compression: requests are an estimate, and bytes an upper bound")
	}
	if r.LeftOut > 0 {
		out = append(out, fmt.Sprintf("%d scenes are left out, because no window can show them, the first: %s",
			r.LeftOut, r.FirstLeft))
	}
	if r.FirstBad != "" {
		out = append(out, fmt.Sprintf("%d samples cannot be read, the first: %s", r.Total.Bad, r.FirstBad))
	}
	return out
}
