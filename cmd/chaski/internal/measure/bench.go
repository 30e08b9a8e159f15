// Package measure has the command bench and its verbs.
package measure

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/bench"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
)

func NewBench(env console.Env) *cobra.Command {
	cmd := console.Command("bench", console.Verb, func(*cobra.Command, []string) error {
		return console.Usagef("the verb is missing: decode or load")
	})
	cmd.AddCommand(newBenchDecode(env), newBenchLoad(env))
	return cmd
}

func newBenchDecode(env console.Env) *cobra.Command {
	var f roundFlags
	var o bench.DecodeOptions
	cmd := console.Command("decode [flags] PATH...", console.AtLeastOne("PATH"),
		func(cmd *cobra.Command, paths []string) error {
			return f.run(env, func(rounds bench.Rounds) (*bench.Report, error) {
				o.Rounds = rounds
				return bench.Decode(cmd.Context(), paths, o)
			})
		})
	f.add(cmd.Flags(), 1)
	console.CountVar(cmd.Flags(), &o.Workers, "workers", 0, 0)
	console.Var(cmd.Flags(), &o.Opened, "opened", false)
	flags.AddMaxChunk(cmd.Flags(), &o.MaxChunk)
	return cmd
}

func newBenchLoad(env console.Env) *cobra.Command {
	var f roundFlags
	var run flags.Run
	var prefetch int
	cmd := console.Command("load [flags] DATASET", console.ExactlyOne("DATASET"),
		func(cmd *cobra.Command, args []string) error {
			return f.run(env, func(rounds bench.Rounds) (*bench.Report, error) {
				spec, options, err := run.Prepare(cmd.Context(), env, args[0])
				if err != nil {
					return nil, err
				}
				report, err := bench.Load(cmd.Context(), bench.LoadOptions{Spec: spec, Options: options,
					Prefetch: prefetch, Rounds: rounds})
				return report, console.UsageUnlessFault(err)
			})
		})
	f.add(cmd.Flags(), 2)
	run.Add(cmd)
	console.CountVar(cmd.Flags(), &prefetch, "prefetch", 0, 1)
	return cmd
}

// roundFlags has the flags of all measurements.
type roundFlags struct {
	json    bool
	rounds  int
	seconds float64
}

func (f *roundFlags) add(fl *pflag.FlagSet, seconds float64) {
	console.Var(fl, &f.json, "json", false)
	console.NumberVar(fl, &f.rounds, "rounds", 5, 1, 1000)
	console.Var(fl, &f.seconds, "seconds", seconds)
}

// run prints what measure finds.
func (f *roundFlags) run(env console.Env, measure func(rounds bench.Rounds) (*bench.Report, error)) error {
	// Not f.seconds <= 0 || f.seconds > 3600, because that would accept NaN.
	if !(f.seconds > 0 && f.seconds <= 3600) {
		return console.Usagef("--seconds is %v: it must be above 0 and at most 3600", f.seconds)
	}
	bar := console.NewBar(env.Err, "measuring")
	report, err := measure(bench.Rounds{Count: f.rounds, Time: time.Duration(f.seconds * float64(time.Second)),
		Progress: func(done, total int) { bar.Set(int64(done), int64(total)) }})
	bar.Done()
	if err != nil {
		return err
	}
	return console.Print(env.Out, report, f.json)
}
