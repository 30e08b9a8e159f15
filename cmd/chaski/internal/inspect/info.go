// Package inspect has the command info, which describes files, containers and arrays from their
// headers.
package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

func NewInfo(env console.Env) *cobra.Command {
	var asJSON bool
	var stamp flags.Timestamp
	cmd := console.Command("info [--json] [--timestamp TIME] PATH...", console.AtLeastOne("PATH"),
		func(cmd *cobra.Command, paths []string) error { return info(cmd.Context(), env, paths, &stamp, asJSON) })
	console.Var(cmd.Flags(), &asJSON, "json", false)
	stamp.Add(cmd.Flags())
	return cmd
}

func info(ctx context.Context, env console.Env, paths []string, at *flags.Timestamp, asJSON bool) error {
	shown := 0
	for _, pattern := range paths {
		matches, err := catalog.Glob(ctx, env.Files, pattern)
		if err != nil {
			return err
		}
		for _, p := range matches {
			if shown++; shown > 1 && !asJSON {
				fmt.Fprintln(env.Out, "---")
			}
			if err := infoOf(ctx, env, env.Files, p, at, asJSON); err != nil {
				return err
			}
		}
	}
	return nil
}

// infoOf describes one path.
func infoOf(ctx context.Context, env console.Env, files source.Opener, path string, at *flags.Timestamp,
	asJSON bool) error {
	info, err := survey.Describe(ctx, path, at.Value, loader.Options{Opener: files})
	switch {
	case errors.Is(err, survey.ErrNotArray):
		return console.Usagef("--timestamp opens arrays: %s is not an array", path)
	case err != nil:
		return err
	}
	return console.Print(env.Out, info, asJSON)
}
