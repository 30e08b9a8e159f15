// Package measure has the command bench and its verbs.
package measure

import (
	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/bench"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/loader"
)

func NewBench(env console.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure decoding and loading",
		Long: `Measure decoding and loading. Each verb runs a warm-up and then several rounds. It prints the
settings, the machine (CPU, cores, Go, system, zstd decoder), and the minimum, median and maximum of the
rounds. Files are read through the cache of the operating system, so that they come from memory after the
warm-up if they fit. MB means 10^6 bytes of decoded pixels.`,
		Example: `  chaski bench decode --rounds 3 --seconds 0.2 chip.tif
  chaski bench load --batch 32 --window 64x64 --rounds 2 --seconds 0.1 chips/`,
		Args: console.Verb,
		RunE: func(*cobra.Command, []string) error {
			return console.Usagef("the verb is missing: decode or load")
		},
	}
	cmd.AddCommand(newBenchDecode(env), newBenchLoad(env))
	return cmd
}

func newBenchDecode(env console.Env) *cobra.Command {
	var f roundFlags
	var o bench.DecodeOptions
	cmd := &cobra.Command{
		Use:   "decode [flags] PATH...",
		Short: "Measure the decoding of whole files",
		Long: `Measure the decoding of whole files: decoded MB and files per second. Each worker decodes one file at a
time; the workers go through the files again and again, in the order of the arguments.

The chunks of a file are decompressed, their predictor is undone, and they are laid out as (b y x). The report
has the workers' time by these stages.

Files FRAME.zl are loose OpenZL frames, which are decompressed only.`,
		Example: `  chaski bench decode --rounds 2 --seconds 0.1 chip.tif
  chaski bench decode --opened --workers 1 --rounds 2 --seconds 0.1 --json chip.tif`,
		Args: console.AtLeastOne("PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if err := f.check(); err != nil {
				return err
			}
			bar, progress := f.bar(env)
			o.Rounds, o.Time, o.Progress = f.rounds, f.time(), progress
			r, err := bench.Decode(cmd.Context(), paths, o)
			bar.Done()
			return f.print(env, r, err)
		},
	}
	f.add(cmd.Flags(), 1)
	console.CountVar(cmd.Flags(), &o.Workers, "workers", 0, 0,
		"decoding workers (default: the number of processors)")
	cmd.Flags().BoolVar(&o.Opened, "opened", false, "open files and read their headers before the measurement")
	flags.AddMaxChunk(cmd.Flags(), &o.MaxChunk)
	return cmd
}

func newBenchLoad(env console.Env) *cobra.Command {
	var f roundFlags
	var run flags.Run
	var prefetch int
	cmd := &cobra.Command{
		Use:   "load [flags] DATASET",
		Short: "Measure batches in this process",
		Long: `Measure the batches of a dataset in this process, as a Go program gets them: samples and MB of tensors per
second, CPU time and allocations per sample and per chunk in the steady state, the time that the consumer
waits for a batch, and the largest resident memory. DATASET is a catalog, table, directory, glob or file,
or SPEC.json, such as Python's loader.spec.`,
		Example: `  chaski bench load --batch 4 --rounds 2 --seconds 0.1 chips/
  chaski bench load --batch 4 --window 32x32 --normalize mean_std --stats stats.json --rounds 2 --seconds 0.1 --json chips/`,
		Args: console.ExactlyOne("DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			spec, options, err := run.Prepare(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			bar, progress := f.bar(env)
			report, err := bench.Load(cmd.Context(), bench.LoadOptions{Spec: spec, Options: options,
				Prefetch: prefetch, Rounds: f.rounds, Time: f.time(), Progress: progress})
			bar.Done()
			return f.print(env, report, console.UsageUnlessFault(err))
		},
	}
	f.add(cmd.Flags(), 2)
	run.Add(cmd)
	console.CountVar(cmd.Flags(), &prefetch, "prefetch", loader.DefaultPrefetch, 1, "batches prepared ahead")
	return cmd
}
