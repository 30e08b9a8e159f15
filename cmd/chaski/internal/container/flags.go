// Package container has the commands about TACO containers and Tortillas: ls, locate, extract and sql.
package container

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/loader/containers"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
)

// containerFlags has the flags that open containers.
type containerFlags struct {
	base string // --base-path
	mode string // --columns-mode
	// joins says that conditions choose the columns: see taco.Options.Chosen.
	joins bool

	warnings []string // of opening, for warn
}

func (f *containerFlags) add(fl *pflag.FlagSet) {
	addBase(fl, &f.base)
	console.ChoiceVar(fl, &f.mode, "columns-mode", column.Modes[0], column.Modes...)
}

// addBase adds --base-path.
func addBase(fl *pflag.FlagSet, base *string) {
	console.Var(fl, base, "base-path", "")
}

// atLeastTwo refuses fewer than two arguments. what names those that are needed.
func atLeastTwo(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 2 {
			return console.Usagef("%s are needed", what)
		}
		return nil
	}
}

// open opens containers. It keeps their warnings for warn.
func (f *containerFlags) open(ctx context.Context, files source.Opener, paths []string,
	filters ...spacetime.Filter) (containers.Set, error) {
	mode, err := column.ParseMode(f.mode)
	if err != nil {
		return containers.Set{}, err
	}
	set, err := taco.Open(ctx, files, paths, taco.Options{BasePath: f.base, Mode: mode, Chosen: f.joins,
		Filters: filters, Warn: func(m string) {
			// Conditions that join groups repeat their warning.
			if !slices.Contains(f.warnings, m) {
				f.warnings = append(f.warnings, m)
			}
		}})
	return containers.Set{Dataset: set}, err
}

// warn prints the warnings of a command that succeeded, and returns its error. A command that fails
// must not print more than the line of its error.
func (f *containerFlags) warn(env console.Env, err error) error {
	if err == nil {
		for _, m := range f.warnings {
			fmt.Fprintln(env.Err, "chaski: warning: "+console.Printable(m))
		}
	}
	return err
}
