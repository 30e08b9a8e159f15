package dataset

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader"
)

// NewJob returns the command job, which has a command for each step of a job.
func NewJob(env console.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job COMMAND",
		Short: "Divide work over a dataset into shards that any machine may do",
		Long: `Divide work over a whole dataset into shards. 'job plan' writes a folder with the list of shards, 'job
run' does one of them, on any machine that sees the folder and the dataset, and 'job merge' joins the
results. Shards may be done in any order, more than once, and again after a kill; the merged result has
the same bytes. 'job local' does all that is left on this machine.

The kind of work is stats: what 'chaski stats' computes.`,
		Example: `  chaski job plan stats -o job/ --shard-rows 1000 --field image=images/{id}.tif pairs/
  chaski job run --shard 0 job/
  chaski job local job/
  chaski job status job/
  chaski job merge -o pooled.json job/`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return console.Usagef("the command of job is missing") },
	}
	cmd.AddCommand(newJobPlan(env), newJobRun(env), newJobLocal(env), newJobStatus(env), newJobMerge(env))
	return cmd
}

func newJobPlan(env console.Env) *cobra.Command {
	var m measured
	var out string
	var o job.PlanOptions
	cmd := &cobra.Command{
		Use:   "plan [flags] KIND SPEC.json|DATASET",
		Short: "Write a job's folder: what is to be done, and the shards",
		Long: `Write a job into a folder, which must not hold one yet. The command opens the dataset and reads no
pixels. KIND is stats. The dataset is named as in 'chaski stats'; other machines open it under the same
name, so that it is best a full path or a URL.`,
		Example: `  chaski job plan stats -o chips-job/ --shards 200 chips/
  chaski job plan stats -o spec-job/ spec.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return console.Usagef("KIND and SPEC.json or DATASET are needed, not %d arguments", len(args))
			}
			if !slices.Contains(job.Kinds, args[0]) {
				return console.Usagef("KIND is %q: it must be %s", args[0], strings.Join(job.Kinds, " or "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return console.Usagef("--output is missing: the folder of the job")
			}
			if o.Shards > 0 && o.ShardRows > 0 {
				return console.Usagef("--shards and --shard-rows exclude each other")
			}
			for name, v := range map[string]int{"shards": o.Shards, "shard-rows": o.ShardRows} {
				if cmd.Flags().Changed(name) && v < 1 {
					return console.Usagef("--%s is %d, not 1 or more", name, v)
				}
			}
			spec, err := m.spec(args[1])
			if err != nil {
				return err
			}
			opener := open.NewOpener(true)
			defer opener.Close()
			j, err := job.Plan(cmd.Context(), out, args[0], spec, o, loader.Options{Opener: opener, SQL: env.SQL})
			if err != nil {
				return console.UsageUnlessFault(err)
			}
			_, err = fmt.Fprintf(env.Out, "%d samples in %d shards\n", j.Extent.Rows, len(j.Shards))
			return err
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&out, "output", "o", "", "the `FOLDER` of the job")
	fl.IntVar(&o.Shards, "shards", 0, "how many shards (default: as --shard-rows says)")
	fl.IntVar(&o.ShardRows, "shard-rows", 0,
		fmt.Sprintf("the most samples of a shard (default %d)", job.DefaultShardRows))
	m.add(fl)
	return cmd
}

// jobRun has the flags of the commands that do shards.
type jobRun struct {
	workers  int
	maxChunk int
	again    bool
}

func (f *jobRun) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.workers, "workers", 0, "decoding workers (default: the number of processors)")
	flags.AddMaxChunk(cmd.Flags(), &f.maxChunk)
}

// do does shards of a job, one after the other.
func (f *jobRun) do(ctx context.Context, env console.Env, j *job.Job, shards []int) error {
	if err := console.AtLeast("workers", f.workers, 0); err != nil {
		return err
	}
	var total, before int64
	for _, i := range shards {
		total += j.Shards[i].Count
	}
	bar := console.NewBar(env.Err, "reading", total)
	defer bar.Done()
	for _, i := range shards {
		opener := open.NewOpener(true)
		o := loader.Options{Workers: f.workers, MaxChunkBytes: f.maxChunk, Opener: opener, SQL: env.SQL}
		err := j.Run(ctx, i, f.again, o, func(done, _ int64) { bar.Set(before+done, total) })
		opener.Close()
		if err != nil {
			return console.UsageUnlessFault(err)
		}
		before += j.Shards[i].Count
	}
	return nil
}

func newJobRun(env console.Env) *cobra.Command {
	var f jobRun
	var shards []int
	cmd := &cobra.Command{
		Use:   "run [flags] --shard K FOLDER",
		Short: "Do one shard of a job",
		Long: `Do one shard of a job and write its result into the job's folder, whole or not at all. A shard that has its
result is done: the command ends at once, unless --again is given.`,
		Example: `  chaski job run --shard 0 job/
  chaski job run --again --shard 0 job/`,
		Args: console.ExactlyOne("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(shards) == 0 {
				return console.Usagef("--shard is missing")
			}
			j, err := job.Open(args[0])
			if err != nil {
				return err
			}
			for _, i := range shards {
				if i < 0 || i >= len(j.Shards) {
					return console.Usagef("--shard is %d: the job has shards 0 to %d", i, len(j.Shards)-1)
				}
			}
			return f.do(cmd.Context(), env, j, shards)
		},
	}
	cmd.Flags().IntSliceVar(&shards, "shard", nil, "the `NUMBER` of the shard, from 0; repeatable")
	cmd.Flags().Lookup("shard").DefValue = "" // pflag would print (default [])
	cmd.Flags().BoolVar(&f.again, "again", false, "do it even if it has its result")
	f.add(cmd)
	return cmd
}

func newJobLocal(env console.Env) *cobra.Command {
	var f jobRun
	cmd := &cobra.Command{
		Use:   "local [flags] FOLDER",
		Short: "Do all shards of a job that have no result, on this machine",
		Long: `Do what is left of a job on this machine, one shard after the other, each on all processors. After a kill the
next run goes on with the shard that was lost.`,
		Example: `  chaski job local job/`,
		Args:    console.ExactlyOne("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := job.Open(args[0])
			if err != nil {
				return err
			}
			shards := make([]int, len(j.Shards))
			for i := range shards {
				shards[i] = i
			}
			return f.do(cmd.Context(), env, j, shards)
		},
	}
	f.add(cmd)
	return cmd
}

func newJobStatus(env console.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [flags] FOLDER",
		Short: "Print how far a job is",
		Long: `Print how many shards have a result, which have none, and which one took longest. What is in the results, only
'job merge' reads.`,
		Example: `  chaski job status job/
  chaski job status --json job/`,
		Args: console.ExactlyOne("FOLDER"),
		RunE: func(_ *cobra.Command, args []string) error {
			j, err := job.Open(args[0])
			if err != nil {
				return err
			}
			s, err := j.Status()
			if err != nil {
				return err
			}
			if asJSON {
				return console.PrintJSON(env.Out, s)
			}
			return printStatus(env.Out, s)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// listed is how many shards without a result are named: as many as fit into a line.
const listed = 10

func printStatus(w io.Writer, s job.Status) error {
	rows := [][]string{
		{"shards", fmt.Sprintf("%d of %d done", s.Done, s.Shards)},
		{"samples", fmt.Sprintf("%d of %d", s.Sampled, s.Samples)},
		{"skipped", fmt.Sprint(s.Skipped)},
	}
	if s.Done > 0 {
		rows = append(rows, []string{"seconds a shard", fmt.Sprintf("%.1f", s.Seconds/float64(s.Done))})
	}
	if s.Slowest >= 0 {
		rows = append(rows, []string{"slowest shard", fmt.Sprint(s.Slowest)})
	}
	if n := len(s.Missing); n > 0 {
		text := fmt.Sprint(slices.Clip(s.Missing[:min(n, listed)]))
		if n > listed {
			text += fmt.Sprintf(" and %d more", n-listed)
		}
		rows = append(rows, []string{"without a result", text})
	}
	return console.WriteTable(w, rows)
}

func newJobMerge(env console.Env) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "merge [flags] FOLDER",
		Short: "Join the results of a job's shards",
		Long: `Join the results of all shards: for stats, the file that 'chaski stats' writes for the same dataset, byte for
byte. A shard without a result, or with results that differ, is an error, and nothing is written.`,
		Example: `  chaski job merge -o pooled.json job/`,
		Args:    console.ExactlyOne("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := job.Open(args[0])
			if err != nil {
				return err
			}
			r, err := j.Merge(cmd.Context())
			if err != nil {
				return err
			}
			return console.WriteFile(out, env.Out, func(w io.Writer) error { return console.PrintJSON(w, r) })
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "-", `output file, "-" for standard output`)
	return cmd
}
