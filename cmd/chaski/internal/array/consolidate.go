package array

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb"
)

type consolidateFlags struct {
	remove    bool
	maxResult int64
}

func NewConsolidate(env console.Env) *cobra.Command {
	var f consolidateFlags
	cmd := &cobra.Command{
		Use:   "consolidate [--remove] [flags] ARRAY",
		Short: "Merge the fragments of a TileDB array into one",
		Long: `Merge all fragments of a local TileDB array (format version 3, dense or sparse) into one, which is what
is read from then on. Every write leaves a fragment, and a window that several of them lie over reads
tiles of each.

The fragments that were merged stay, hidden by the new one: the array can still be opened as it was
at a time before (--timestamp), and takes the space of both. --remove deletes them, and those that an
earlier run has hidden: programs that have the array open may then find its files gone. With --remove an
array of one fragment is only cleaned.

The new fragment appears in one step, when it is complete; before, a run that is broken off leaves the
array as it was. Memory is that of a tile of each attribute (of a sparse array, of each fragment), not of
the array. Cells of a dense array that were never written, inside of what was, are written with the
fill value.

One line of JSON tells what was merged: the fragments' names and bytes, the new one's, and what was
removed. An array of one fragment is left alone, and "fragment" is null. Arrays with bzip2 are read,
not written, and so not merged. Encrypted arrays want their key: see 'chaski array'.`,
		Example: `  chaski consolidate series
  chaski consolidate --remove series`,
		Args: console.ExactlyOne("ARRAY"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), env, args[0]) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.remove, "remove", false, "delete the fragments that were merged, and all that are hidden")
	fl.Int64Var(&f.maxResult, "max-result", tiledb.DefaultMaxResult, "most bytes of lists of tiles, or of cells to sort, in memory")
	return cmd
}

// Consolidated is what the command prints.
type Consolidated struct {
	Array    string   `json:"array"`
	Merged   []string `json:"merged"`
	Before   int64    `json:"bytes_before"`
	Fragment *string  `json:"fragment"`
	Bytes    int64    `json:"bytes"`
	Removed  []string `json:"removed"`
	Freed    int64    `json:"bytes_freed"`
}

func (f *consolidateFlags) run(ctx context.Context, env console.Env, path string) error {
	if f.maxResult < 1 {
		return console.Usagef("--max-result is at least 1")
	}
	if source.IsRemote(path) {
		return fault.WithFile(fault.New(fault.Unsupported, "array", fault.NoOffset, "it is remote: only local arrays can be written to"), path)
	}
	var files tiledb.Files
	defer files.Close()
	a, err := open.Array(ctx, &files, path, tiledb.Options{MaxResult: f.maxResult})
	if err != nil {
		return err
	}
	bar := console.NewBar(env.Err, "merging tiles", -1)
	m, err := a.Merge(ctx, tiledb.MergeOptions{Remove: f.remove, Progress: bar.Set})
	bar.Done()
	if err != nil {
		return fault.WithFile(err, path)
	}
	out := Consolidated{Array: path, Merged: append([]string{}, m.From...), Before: m.Before, Bytes: m.Bytes, Removed: append([]string{}, m.Removed...), Freed: m.Freed}
	if m.Fragment != "" {
		out.Fragment = &m.Fragment
	}
	return console.PrintJSON(env.Out, out)
}
