package cache

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/source/diskcache"
)

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
			if err := errors.Join(err, engine.Close()); err != nil { // what it was storing is on disk now
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
	bar := console.NewBar(env.Err, "warming", folder.Quota())
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
