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
		for _, uri := range matches {
			if shown++; shown > 1 && !asJSON {
				fmt.Fprintln(env.Out, "---")
			}
			found, err := survey.Describe(ctx, uri, at.Value, loader.Options{Opener: env.Files})
			switch {
			case errors.Is(err, survey.ErrNotArray):
				return console.Usagef("--timestamp opens arrays: %s is not an array", uri)
			case err != nil:
				return err
			}
			if err := console.Print(env.Out, found, asJSON); err != nil {
				return err
			}
		}
	}
	return nil
}
