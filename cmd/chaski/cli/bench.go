package cli

import (
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/bench"
	"github.com/chaski-eo/chaski/codec/openzl"
	"github.com/chaski-eo/chaski/loader"
)

// roundFlags are common to all measurements.
type roundFlags struct {
	json    bool
	rounds  int
	seconds float64
	workers int
}

func (f *roundFlags) add(fl *pflag.FlagSet, seconds float64) {
	f.addRounds(fl, seconds)
	fl.IntVar(&f.workers, "workers", 0, "decoding workers (default: the number of processors)")
}

// addRounds adds the flags of a measurement that has one worker.
func (f *roundFlags) addRounds(fl *pflag.FlagSet, seconds float64) {
	fl.BoolVar(&f.json, "json", false, "one line of JSON instead of a table")
	fl.IntVar(&f.rounds, "rounds", 5, "rounds, each measured for itself")
	fl.Float64Var(&f.seconds, "seconds", seconds, "time of a round, at least, in seconds")
}

func (f *roundFlags) check() error {
	if f.rounds < 1 || f.rounds > 1000 || !(f.seconds >= 0 && f.seconds <= 3600) || f.workers < 0 {
		return usagef("--rounds is from 1 to 1000, --seconds from 0 to 3600, --workers at least 0")
	}
	return nil
}

func (f *roundFlags) time() time.Duration { return time.Duration(f.seconds * float64(time.Second)) }

// print shows a report, if there is one.
func (f *roundFlags) print(s streams, r interface{ WriteText(io.Writer) error }, err error) error {
	switch {
	case err != nil:
		return err
	case f.json:
		return printJSON(s.out, r)
	}
	return r.WriteText(s.out)
}

// bar shows the rounds that are done.
func (f *roundFlags) bar(s streams) (*progress, func(done, total int)) {
	p := newProgress(s.err, "measuring", int64(f.rounds))
	return p, func(done, total int) { p.set(int64(done), int64(total)) }
}

func newBench(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure decoding, loading and streaming",
		Long: `Measure. Every verb runs a warm-up and then several rounds, and prints the settings, the
machine (CPU, cores, Go, system, zstd decoder), and the least, median and greatest figure of the
rounds. Files are read through the operating system's cache, so after the warm-up from memory if
they fit. MB are 10^6 bytes of decoded samples.`,
		Example: `  chaski bench decode --rounds 3 --seconds 0.2 chip.tif
  chaski bench load --batch 32 --window 64x64 --rounds 2 --seconds 0.1 chips/`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("no verb is named: decode, frames, load, peers or stream")
		},
	}
	cmd.AddCommand(newBenchDecode(s), newBenchFrames(s), newBenchLoad(s), newBenchPeers(s), newBenchStream(s))
	return cmd
}

func newBenchDecode(s streams) *cobra.Command {
	var f roundFlags
	var o bench.DecodeOptions
	cmd := &cobra.Command{
		Use:   "decode [flags] PATH...",
		Short: "Measure the decoding of whole files",
		Long: `Measure the decoding of whole files, one file a worker at a time, again and again in the order
named: MB of decoded samples and files a second.

A stage says how far a file is decoded: codec is decompression alone; chunk also undoes the predictor;
array also lays the chunks out as (b y x); float32 also casts, scales and offsets them.`,
		Example: `  chaski bench decode --rounds 2 --seconds 0.1 chip.tif
  chaski bench decode --stage float32 --workers 1 --rounds 2 --seconds 0.1 --json chip.tif`,
		Args: atLeastOne("PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if err := firstError(f.check(), oneOf("stage", o.Stage, bench.Stages()...)); err != nil {
				return err
			}
			p, progress := f.bar(s)
			o.Rounds, o.Time, o.Workers, o.Progress = f.rounds, f.time(), f.workers, progress
			r, err := bench.Decode(cmd.Context(), paths, o)
			p.done()
			return f.print(s, r, err)
		},
	}
	f.add(cmd.Flags(), 1)
	cmd.Flags().StringVar(&o.Stage, "stage", bench.StageArray, strings.Join(bench.Stages(), ", "))
	cmd.Flags().BoolVar(&o.Opened, "opened", false, "leave opening files and reading their headers out")
	addMaxChunk(cmd.Flags(), &o.MaxChunk)
	return cmd
}

func newBenchFrames(s streams) *cobra.Command {
	var f roundFlags
	var o bench.FramesOptions
	cmd := &cobra.Command{
		Use:   "frames [flags] DIR",
		Short: "Measure the decoding of OpenZL frames",
		Long: `Measure the decoding of OpenZL frames, DIR/CLASS/*.zl, on one core: MB of decoded bytes a second
for each class. A round measures every class in turn, for the time of --seconds each. All frames are
held in memory and decoded once before; where FRAME.raw lies beside FRAME.zl it must be what the frame
decodes to. ratio is decoded bytes over stored ones.

With --python the original library, openzl (and geozl, for frames with its codecs) of that interpreter,
decodes the same frames in the same rounds, never at the same time, and must give the same bytes.
times is how many times as fast chaski is: the median over the rounds of the one speed over the other.
The geometric mean leaves the class store out, which measures how memory is copied.`,
		Example: `  chaski bench frames --rounds 2 --seconds 0.01 frames/
  chaski bench frames --rounds 2 --seconds 0.01 --json frames/`,
		Args: exactlyOne("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if o.MaxOutput < 1 {
				return usagef("--max-output is at least 1")
			}
			p, progress := f.bar(s)
			o.Rounds, o.Time, o.Progress = f.rounds, f.time(), progress
			r, err := bench.Frames(cmd.Context(), args[0], o)
			p.done()
			return f.print(s, r, err)
		},
	}
	f.addRounds(cmd.Flags(), 0.2)
	cmd.Flags().StringVar(&o.Python, "python", "", "`PYTHON` with the original library, to be measured beside (default: none)")
	cmd.Flags().IntVar(&o.MaxOutput, "max-output", openzl.DefaultMaxOutput, "largest content of a frame, in bytes")
	return cmd
}

func newBenchLoad(s streams) *cobra.Command {
	var f roundFlags
	var d datasetFlags
	var prefetch int
	var memory int64
	cmd := &cobra.Command{
		Use:   "load [flags] DATASET",
		Short: "Measure batches in this process",
		Long: `Measure the batches of a dataset (a catalog, table, folder, glob or file; or SPEC.json, as Python's
loader.spec gives it) in this process, as a Go program gets them: samples and MB of tensors a second,
CPU time and allocations a sample (and a chunk) in the steady state, the consumer's waits for a batch,
and the most memory that was resident.`,
		Example: `  chaski bench load --batch 4 --rounds 2 --seconds 0.1 chips/
  chaski bench load --batch 4 --window 32x32 --normalize mean_std --stats stats.json --rounds 2 --seconds 0.1 --json chips/`,
		Args: exactlyOne("DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if prefetch < 1 || memory < 0 {
				return usagef("--prefetch is at least 1, --memory at least 0")
			}
			spec, err := d.specOf(args[0])
			if err != nil {
				return err
			}
			p, progress := f.bar(s)
			opener := newOpener(true)
			defer opener.Close()
			r, err := bench.Load(cmd.Context(), bench.LoadOptions{
				Spec: spec, Options: loader.Options{Workers: f.workers, MemoryBytes: memory, Opener: opener, SQL: s.sql}, Prefetch: prefetch,
				Rounds: f.rounds, Time: f.time(), Progress: progress,
			})
			p.done()
			return f.print(s, r, usage(err))
		},
	}
	f.add(cmd.Flags(), 2)
	d.add(cmd.Flags(), 32, true)
	d.addArithmetic(cmd.Flags())
	cmd.Flags().IntVar(&prefetch, "prefetch", loader.DefaultPrefetch, "batches in the making")
	addMemory(cmd.Flags(), &memory, "batches")
	return cmd
}

func newBenchStream(s streams) *cobra.Command {
	var f roundFlags
	var d datasetFlags
	var o bench.StreamOptions
	cmd := &cobra.Command{
		Use:   "stream [flags] DATASET",
		Short: "Measure batches that arrive in Python",
		Long: `Measure the batches of a dataset as a Python process gets them from an engine of its own on this
machine ('chaski serve' on a Unix socket): samples and MB of tensors a second. The interpreter must
have the package chaski; --python-path puts a folder with it before its PYTHONPATH.`,
		Example: `  chaski bench stream --python python3 --batch 4 --rounds 2 --seconds 0.1 chips/`,
		Args:    exactlyOne("DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			var err error
			if o.Spec, err = d.specOf(args[0]); err != nil {
				return err
			}
			if o.Engine == "" {
				if o.Engine, err = os.Executable(); err != nil {
					return err
				}
			}
			p, progress := f.bar(s)
			o.Rounds, o.Time, o.Workers, o.Progress = f.rounds, f.time(), f.workers, progress
			r, err := bench.Stream(cmd.Context(), o)
			p.done()
			return f.print(s, r, err)
		},
	}
	f.add(cmd.Flags(), 2)
	d.add(cmd.Flags(), 32, true)
	d.addArithmetic(cmd.Flags())
	fl := cmd.Flags()
	fl.StringVar(&o.Python, "python", "python3", "the interpreter")
	fl.StringVar(&o.Path, "python-path", "", "`FOLDER` put before PYTHONPATH")
	fl.StringVar(&o.Engine, "engine", "", "the chaski `COMMAND` that serves (default: this one)")
	fl.BoolVar(&o.Torch, "torch", false, "make torch tensors of the batches")
	return cmd
}
