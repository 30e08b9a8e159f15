package raster

import (
	"cmp"
	"context"
	"io"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/shards"
	"github.com/chaski-eo/chaski/ops/verify"
	"github.com/chaski-eo/chaski/store"
)

func NewVerify(env console.Env) *cobra.Command {
	var o verify.Options
	var p datasetFlags
	var f verifyFlags
	cmd := console.Command("verify [flags] PATH...\n  chaski verify --pairs|--samples [flags] SPEC.json|DATASET",
		console.AtLeastOne("PATH"),
		func(cmd *cobra.Command, paths []string) error {
			if err := cmp.Or(console.EndsLike(f.out, console.JSON), f.shards.Check(cmd.Flags(), f.out)); err != nil {
				return err
			}
			if p.pairs || p.samples {
				if f.shards.Given() {
					return console.Usagef("--shard and --merge are not for --pairs and --samples")
				}
				return p.run(cmd, env, paths, f.out, o)
			}
			if name := flags.Changed(&p.own); name != "" {
				return console.Usagef("--%s needs --pairs or --samples", name)
			}
			return f.run(cmd.Context(), env, paths, o)
		})
	defined := cmd.Flags()
	console.CountVar(defined, &o.Workers, "workers", 0, 0)
	flags.AddMaxChunk(defined, &o.MaxChunk)
	console.Var(defined, &o.Pixels, "pixels", false)
	console.CountVar(defined, &o.MaxFaults, "max-faults", 1000, 1)
	console.Var(defined, &f.out, "output,o", "-")
	f.shards.Add(defined)
	p.add(defined)
	return cmd
}

type verifyFlags struct {
	out    string
	shards shards.Flags
}

func (f *verifyFlags) run(ctx context.Context, env console.Env, paths []string, o verify.Options) error {
	var err error
	if o.Key, err = store.KeyFromEnv(); err != nil {
		return err
	}
	bar := console.NewBar(env.Err, "verifying")
	defer bar.Done()
	o.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	o.Opener = env.Files
	if f.shards.Given() {
		return f.divided(ctx, env, paths, o)
	}
	report, err := verify.Paths(ctx, paths, o)
	bar.Done()
	if err != nil {
		return err
	}
	return cmp.Or(env.WriteJSON(ctx, f.out, report), report.Err())
}

// verified is what a shard has found.
type verified struct {
	verify.Part
	First string `json:"first"` // the line of the first fault, or ""
}

// divided checks a share of the files, or writes the report of all parts.
func (f *verifyFlags) divided(ctx context.Context, env console.Env, paths []string, o verify.Options) error {
	files, err := verify.Expand(ctx, paths, o)
	if err != nil {
		return err
	}
	work := shards.Work{Output: f.out, Settings: []any{o.Pixels, o.MaxFaults, o.MaxChunk}, Items: int64(len(files)),
		Env: env,
		Files: func(_ context.Context, i int64) ([]shards.File, error) {
			return []shards.File{{Name: files[i].Path}}, nil
		}}
	if work.Inputs, err = shards.Hash(slices.Values(files)); err != nil {
		return err
	}
	first := ""
	work.Outcome = &first
	err = f.shards.Do(ctx, work, func(s shards.Share, _ io.Writer) (any, error) {
		part, err := verify.Files(ctx, files, int(s.First), int(s.Count), o)
		if err != nil {
			return nil, err
		}
		found := verified{Part: *part}
		if err := part.Err(); err != nil {
			found.First = console.Failure(err, "verify")
		}
		return found, nil
	}, func(parts iter.Seq2[*shards.Part, error]) error {
		total := &verify.Part{Report: verify.Report{Faults: []string{}}}
		for part, err := range shards.As(parts, shards.ParseTally[verified]) {
			if err != nil {
				return err
			}
			total.Add(&part.Part, o.MaxFaults)
			first = cmp.Or(first, part.First)
		}
		return env.WriteJSON(ctx, f.out, total.Whole())
	})
	if err == nil && first != "" {
		err = console.Said(first)
	}
	return err
}
