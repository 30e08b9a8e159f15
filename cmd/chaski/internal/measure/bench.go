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
			if err := f.check(); err != nil {
				return err
			}
			bar, progress := f.bar(env)
			o.Rounds, o.Time, o.Progress = f.rounds, f.time(), progress
			r, err := bench.Decode(cmd.Context(), paths, o)
			bar.Done()
			return f.print(env, r, err)
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
		})
	f.add(cmd.Flags(), 2)
	run.Add(cmd)
	console.CountVar(cmd.Flags(), &prefetch, "prefetch", loader.DefaultPrefetch, 1)
	return cmd
}
