// Package container has the commands about TACO containers and Tortillas: ls, entries, locate, extract, sql and ask.
package container

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
)

// containerFlags open containers.
type containerFlags struct {
	base string
	mode string

	chosen   bool // taco.Options.Chosen
	warnings []string
}

func (f *containerFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.base, "base-path", "", "`FOLDER` of the source files of a catalog (default: where the catalog is)")
	fl.StringVar(&f.mode, "columns-mode", "intersection", "columns that not all containers have: intersection, fill_missing or strict")
}

// open opens containers. What they warn of is kept for told.
func (f *containerFlags) open(ctx context.Context, files source.Opener, paths []string, only ...taco.Filter) (*taco.Dataset, error) {
	mode, err := tables.ParseMode(f.mode)
	if err != nil {
		return nil, console.WrongUsage(err)
	}
	return taco.Open(ctx, files, paths, taco.Options{BasePath: f.base, Mode: mode, Chosen: f.chosen, Only: only, Warn: func(m string) {
		if !slices.Contains(f.warnings, m) { // conditions that join groups say theirs with each question
			f.warnings = append(f.warnings, m)
		}
	}})
}

// told prints the warnings of a command that succeeded: one that fails prints its error alone.
func (f *containerFlags) told(env console.Env, err error) error {
	if err == nil {
		for _, m := range f.warnings {
			fmt.Fprintln(env.Err, "chaski: warning: "+console.Printable(m))
		}
	}
	return err
}
