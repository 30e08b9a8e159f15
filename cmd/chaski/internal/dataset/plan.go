package dataset

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/loader"
)

type planFlags struct {
	run         flags.Run
	epoch       uint64
	rank, world int
	prefetch    int
	sample      int64
	all         bool
}

func NewPlan(env console.Env) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan [flags] SPEC.json|DATASET",
		Short: "Say what a run will cost, before it",
		Long: `Say what an epoch of a run will cost, from headers, tables and the order alone: no pixel is read. The
run is a spec in JSON, such as Python's loader.spec, or a dataset with the flags of 'chaski bench load'.

Of an epoch, of a step in the mean, and of the step with the most:

  opens     assets opened, one for every window
  requests  reads of pixels: neighbouring chunks are one
  read      bytes of those reads, with the gaps between joined chunks
  needed    chunks that windows touch, each for every window
  decoded   chunks that are decoded, and their bytes: fewer than needed where the windows of a pool
            share decoded tiles

and the memory at most: batches, shared tiles, what workers hold, headers and pages of tables. Reading
headers that a catalog does not hold is not counted.

The figures are exact where all steps were looked at and no sample is bad, of arrays for one worker. What is
read of points is an estimate where tiles of them lie in a window only in part. With shared tiles they are
for the first epoch of an engine: requests and bytes are exact for one worker, and decoded chunks for any
number as long as no tile has to make room. Of an epoch of more than --sample samples some stretches
stand for all. With --world N, one rank of N that has an engine for itself is counted.`,
		Example: `  chaski plan --batch 2 --window 64x64 --per-asset 4 chips/
  chaski plan --json spec.json`,
		Args: console.ExactlyOne("SPEC.json or DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.do(cmd, env, args[0]) },
	}
	f.run.Add(cmd)
	fl := cmd.Flags()
	f.run.AddJSON(fl, "one line of JSON instead of a table")
	fl.Uint64Var(&f.epoch, "epoch", 0, "the epoch that is looked at")
	fl.IntVar(&f.rank, "rank", 0, "the rank that is counted")
	fl.IntVar(&f.world, "world", 1, "how many ranks share a step (1: all of its rows)")
	fl.IntVar(&f.prefetch, "prefetch", loader.DefaultPrefetch, "batches in the making")
	fl.Int64Var(&f.sample, "sample", loader.DefaultForecastSamples, "most samples that are looked at")
	fl.BoolVar(&f.all, "all", false, "look at every sample, however many there are")
	return cmd
}

// planReport is what plan prints.
type planReport struct {
	Spec    string `json:"spec"`
	Dataset string `json:"dataset"`
	// Fields say what the members of a batch are: what each column was found to hold, its dtype and its lengths.
	Fields []string `json:"fields"`
	*loader.Forecast
	MemoryTotal int64 `json:"memory_total"`
	Exact       bool  `json:"exact"`
}

func (f *planFlags) do(cmd *cobra.Command, env console.Env, path string) error {
	if f.world < 1 || f.rank < 0 || f.rank >= f.world || f.prefetch < 1 || f.sample < 1 {
		return console.Usagef("--rank is below --world; --prefetch and --sample are at least 1")
	}
	e, closeAll, err := f.run.Open(cmd.Context(), env, path, nil)
	if err != nil {
		return err
	}
	defer closeAll()
	o := loader.ForecastOptions{Epoch: f.epoch, Rank: f.rank, World: f.world, Prefetch: f.prefetch, Samples: f.sample}
	if f.all {
		o.Samples = -1
	}
	bar := console.NewBar(env.Err, "planning", -1)
	o.Progress = bar.Set
	p, err := e.Forecast(cmd.Context(), o)
	bar.Done()
	if err != nil {
		return console.UsageUnlessFault(err)
	}
	r := planReport{Spec: e.Hash(), Dataset: e.Fingerprint(), Fields: fieldTexts(e.Fields()), Forecast: p, MemoryTotal: p.Memory.Total(), Exact: p.Exact()}
	if f.run.Json {
		return console.PrintJSON(env.Out, r)
	}
	return r.print(env, e.Spec())
}

func (r *planReport) print(env console.Env, spec loader.Spec) error {
	fmt.Fprintf(env.Out, "spec %s of dataset %s\nepoch %d: %d samples, %d steps of %d", r.Spec, r.Dataset, r.Epoch, r.Samples, r.Steps, spec.BatchSize)
	if r.World > 1 {
		fmt.Fprintf(env.Out, "; rank %d of %d", r.Rank, r.World)
	}
	fmt.Fprintf(env.Out, "\n%s\n\n", "fields: "+strings.Join(r.Fields, "; "))
	if err := console.WriteTable(env, r.work()); err != nil {
		return err
	}
	if len(r.Sources) > 1 {
		fmt.Fprintln(env.Out)
		if err := console.WriteTable(env, r.sources()); err != nil {
			return err
		}
	}
	fmt.Fprintln(env.Out)
	if err := console.WriteTable(env, r.memory()); err != nil {
		return err
	}
	fmt.Fprintln(env.Out)
	for _, n := range r.notes() {
		fmt.Fprintln(env.Out, n)
	}
	return nil
}

func (r *planReport) work() [][]string {
	rows := [][]string{{"", "epoch", "a step", "most in a step"}}
	line := func(name string, of func(w *loader.Work) string) {
		rows = append(rows, []string{name, of(&r.Total), of(&r.Mean), of(&r.Most)})
	}
	count := func(n int64) string { return fmt.Sprint(n) }
	line("samples", func(w *loader.Work) string { return count(w.Rows) })
	if r.Total.Bad > 0 {
		line("bad samples", func(w *loader.Work) string { return count(w.Bad) })
	}
	line("opens", func(w *loader.Work) string { return count(w.Opens) })
	line("requests", func(w *loader.Work) string { return count(w.Requests) })
	line("read", func(w *loader.Work) string { return console.DecimalSize(w.Bytes) })
	line("chunks needed", func(w *loader.Work) string { return count(w.Needed) })
	line("chunks decoded", func(w *loader.Work) string { return count(w.Chunks) })
	line("decoded", func(w *loader.Work) string { return console.DecimalSize(w.Decoded) })
	return rows
}

func (r *planReport) sources() [][]string {
	rows := [][]string{{"source", "samples", "bad", "requests", "read", "chunks decoded", "decoded"}}
	for i := range r.Sources {
		w := &r.Sources[i]
		rows = append(rows, []string{console.OneLine(w.Name), fmt.Sprint(w.Rows), fmt.Sprint(w.Bad), fmt.Sprint(w.Requests), console.DecimalSize(w.Bytes), fmt.Sprint(w.Chunks), console.DecimalSize(w.Decoded)})
	}
	return rows
}

func (r *planReport) memory() [][]string {
	m := &r.Memory
	rows := [][]string{
		{"memory at most", "each", "of them", "together"},
		{"batches", console.DecimalSize(m.Batch), fmt.Sprint(m.Batches), console.DecimalSize(m.Batch * int64(m.Batches))},
	}
	if m.Tiles > 0 {
		rows = append(rows, []string{"shared tiles", "", "", console.DecimalSize(m.Tiles)})
	}
	return append(rows,
		[]string{"workers", console.DecimalSize(m.Worker), fmt.Sprint(m.Workers), console.DecimalSize(m.Worker * int64(m.Workers))},
		[]string{"headers, tables", "", "", console.DecimalSize(m.Catalog)},
		[]string{"sum", "", "", console.DecimalSize(m.Total())})
}

func (r *planReport) notes() (out []string) {
	switch {
	case r.Examined < r.Steps:
		out = append(out, fmt.Sprintf("estimated from %d of %d steps; --all looks at every one", r.Examined, r.Steps))
	case r.Exact:
		out = append(out, "exact: every step was looked at")
	}
	if r.Evicted > 0 {
		out = append(out, fmt.Sprintf("%d tiles have to make room for others: the figures are those of one worker, and more memory saves decoding", r.Evicted))
	}
	if r.Loose {
		out = append(out, "which values of points, or of sparse fragments, are read depends on their coordinates: requests are estimated, and bytes those at most")
	}
	if r.FirstBad != "" {
		out = append(out, fmt.Sprintf("%d samples cannot be read, the first: %s", r.Total.Bad, r.FirstBad))
	}
	return out
}
