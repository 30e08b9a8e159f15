// Package cache has the command cache, which looks after the folder of --cache-dir.
package cache

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/source/diskcache"
)

// NewCache has the command cache, which looks after the folder of --cache-dir.
func NewCache(env console.Env) *cobra.Command {
	cmd := console.Command("cache", console.Verb, func(*cobra.Command, []string) error {
		return console.Usagef("the verb is missing: ls, warm, verify, trim or clear")
	})
	verb := func(use string, run func(dir string) error) *cobra.Command {
		below := console.Command(use, console.ExactlyOne("DIR"),
			func(_ *cobra.Command, args []string) error { return run(args[0]) })
		cmd.AddCommand(below)
		return below
	}
	asJSON := false
	list := verb("ls [flags] DIR", func(dir string) error {
		content, err := diskcache.List(dir)
		if err != nil {
			return err
		}
		return console.Print(env.Out, content, asJSON)
	})
	console.Var(list.Flags(), &asJSON, "json", false)
	cmd.AddCommand(newWarm(env))
	verb("verify DIR", func(dir string) error {
		bar := console.NewBar(env.Err, "verifying")
		ranges, damaged, err := diskcache.Verify(dir, func(done int64) { bar.Set(done, -1) })
		bar.Done()
		if err == nil && damaged > 0 {
			err = fault.WithFile(fault.New(fault.Corrupt, "ranges",
				"%d of %d were damaged, and are removed", damaged, ranges), dir)
		}
		return err
	})
	bytes := int64(0)
	trim := verb("trim --bytes BYTES DIR", func(dir string) error {
		if bytes == 0 {
			return console.Usagef("--bytes is missing")
		}
		return diskcache.Trim(dir, bytes)
	})
	console.CountVar(trim.Flags(), &bytes, "bytes", 0, 1)
	verb("clear DIR", func(dir string) error { return diskcache.Trim(dir, 0) })
	return cmd
}

// newWarm has the command warm, which fills the folder of --cache-dir before a run.
func newWarm(env console.Env) *cobra.Command {
	var run flags.Run
	cmd := console.Command("warm [flags] SPEC.json|DATASET", console.ExactlyOne("SPEC.json or DATASET"),
		func(cmd *cobra.Command, args []string) error {
			folder, err := env.Cache.Get()
			if err != nil {
				return err
			}
			if folder == nil {
				return console.Usagef("--cache-dir is missing")
			}
			engine, err := run.Open(cmd.Context(), env, args[0], func(_ *loader.Spec, o *loader.Options) {
				o.Disk = nil // the first ranges stay, whatever is read next
			})
			if err != nil {
				return err
			}
			err = warm(cmd.Context(), env, engine, folder)
			// The engine is closed first, so what it was storing is on disk.
			if err := errors.Join(err, engine.Close()); err != nil {
				return err
			}
			content, err := diskcache.List(folder.Path())
			if err != nil {
				return err
			}
			return console.Print(env.Out, content, run.JSON)
		})
	run.Add(cmd)
	run.AddJSON(cmd.Flags())
	return cmd
}

// warm reads an epoch as a run does, until the folder is full. What is there already is not read again.
func warm(ctx context.Context, env console.Env, engine *loader.Engine, folder *diskcache.Folder) error {
	batches, err := loader.NewLoader(engine, loader.LoaderOptions{Epochs: 1})
	if err != nil {
		return err
	}
	defer batches.Close()
	bar := console.NewBar(env.Err, "warming")
	defer bar.Done()
	for {
		switch s := folder.Stats(); {
		case s.Refused > 0:
			return nil
		case s.Failed > 0:
			return errors.New("the disk of --cache-dir is full or fails")
		}
		bar.Set(folder.Used(), folder.Quota())
		batch, err := batches.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		batch.Release()
	}
}
