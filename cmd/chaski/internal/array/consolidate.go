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
	merge tiledb.MergeOptions
	open  tiledb.Options
}

func NewConsolidate(env console.Env) *cobra.Command {
	var f consolidateFlags
	cmd := &cobra.Command{
		Use:   "consolidate [--remove] [flags] ARRAY",
		Short: "Merge the fragments of a dense TileDB array into one",
		Long: `Merge all fragments of a local, dense TileDB array (format version 3) into one. Every write adds
a fragment, and a window that several fragments cover reads tiles of each. After the merge it reads tiles of
the new fragment only.

The old fragments stay, hidden by the new one: --timestamp still opens the array as it was before, and
the array takes the space of both. --remove deletes them, and fragments that an earlier run hid; programs
that have the array open may then miss files. With --remove an array of one fragment is only cleaned.

The new fragment appears in one step, when it is complete. An interrupted run leaves the array as it was.
The command needs memory for one tile of each attribute, not for the array. Cells that were never written,
within the box of all writes, get the fill value.

The command prints one line of JSON: names and bytes of the merged fragments, those of the new one, and
what was removed. It leaves an array of one fragment alone; "fragment" is then null. It cannot merge arrays
with bzip2, because chaski reads bzip2 but does not write it, and no sparse arrays: tiledb.consolidate of the
Python package tiledb merges those. For encrypted arrays see 'chaski array'.`,
		Example: `  chaski consolidate series
  chaski consolidate --remove series`,
		Args: console.ExactlyOne("ARRAY"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), env, args[0]) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.merge.Remove, "remove", false, "delete the merged fragments, and all hidden ones")
	console.CountVar(fl, &f.open.MaxResult, "max-result", tiledb.DefaultMaxResult, 1,
		"memory for lists of tiles, in bytes")
	return cmd
}

// Consolidated is the JSON that the command prints.
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
	if source.IsRemote(path) {
		return fault.WithFile(fault.New(fault.Unsupported, "array", fault.NoOffset,
			"it is remote: only local arrays can be written to"), path)
	}
	var files source.Files
	defer files.Close()
	array, err := open.Array(ctx, &files, path, f.open)
	if err != nil {
		return err
	}
	bar := console.NewBar(env.Err, "merging tiles", -1)
	f.merge.Progress = bar.Set
	merged, err := array.Merge(ctx, f.merge)
	bar.Done()
	if err != nil {
		return fault.WithFile(err, path)
	}
	out := Consolidated{Array: path, Merged: append([]string{}, merged.From...), Before: merged.Before,
		Bytes:   merged.Bytes,
		Removed: append([]string{}, merged.Removed...), Freed: merged.Freed}
	if merged.Fragment != "" {
		out.Fragment = &merged.Fragment
	}
	return console.PrintJSON(env.Out, out)
}
