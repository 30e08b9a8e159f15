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
		Use:  "consolidate [--remove] [flags] ARRAY",
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
