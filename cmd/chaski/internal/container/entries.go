package container

import (
	"bufio"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/store/taco"
)

type entriesFlags struct {
	containerFlags
	conditionFlags
	level  int
	format string
}

func NewEntries(env console.Env) *cobra.Command {
	var f entriesFlags
	cmd := &cobra.Command{
		Use:   "entries [flags] CONTAINER...",
		Short: "List where all samples of a level are, for programs",
		Long: `List the samples of a level of containers by column, for programs: the Python package asks so.

With --format npy: NumPy arrays, one after the other. Of every sample that is no placeholder, or of
those that --given leaves (at level 0 in its order, below it without the rows that a condition on
place or time of that level drops): row (int64, in the table of its level), parent
(int64, the row of the level above, or -1), folder (uint8, 1 where it has children), file (int32,
number of the file that holds it), offset and size (int64, bytes; both -1 where the file is all of
it). Then the ids and the names of the files: of each the ends (int64) of the texts, and their bytes
(uint8, UTF-8).

With --format json: {"format", "levels", "id_column", "parts", "collection"} of the dataset.`,
		Example: `  chaski entries --format json data.tacozip
  chaski entries --level 1 data.tacozip > level1.npys`,
		Args: console.AtLeastOne("CONTAINER"),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if err := console.OneOf("format", f.format, "npy", "json"); err != nil {
				return err
			}
			if f.level < 0 {
				return console.Usagef("--level is %d: it must be at least 0", f.level)
			}
			return f.told(env, f.run(cmd.Context(), env, paths))
		},
	}
	fl := cmd.Flags()
	f.containerFlags.add(fl)
	f.conditionFlags.add(fl)
	f.sql = env.SQL
	fl.IntVar(&f.level, "level", 0, "level to list")
	fl.StringVar(&f.format, "format", "npy", "npy or json")
	return cmd
}

// datasetInfo is what --format json tells.
type datasetInfo struct {
	Format     string          `json:"format"`
	Levels     int             `json:"levels"`
	IDColumn   string          `json:"id_column"`
	Parts      []string        `json:"parts"`
	Collection json.RawMessage `json:"collection"`
}

func (f *entriesFlags) run(ctx context.Context, env console.Env, paths []string) (err error) {
	given, err := f.subset()
	if err != nil {
		return err
	}
	f.chosen = given.Joins()
	d, done, err := f.dataset(ctx, paths)
	if err != nil {
		return err
	}
	defer func() { done(err) }()
	if f.format == "json" {
		return console.PrintJSON(env.Out, datasetInfo{d.Format(), d.Levels(), d.IDColumn(), d.Parts(), d.Collection()})
	}
	rows, err := f.rows(ctx, d)
	if err != nil {
		return err
	}
	e := &entryArrays{files: map[string]int32{}}
	if err := e.fill(ctx, d, f.level, rows); err != nil {
		return err
	}
	w := bufio.NewWriterSize(env.Out, 1<<16)
	return console.FirstError(e.write(w), w.Flush())
}

// rows returns the rows of the level that are listed.
func (f *entriesFlags) rows(ctx context.Context, d *taco.Dataset) ([]int, error) {
	if f.level > 0 && f.text == "" {
		return d.Visible(ctx, f.level)
	}
	found, err := f.samples(ctx, d)
	if err != nil {
		return nil, err
	}
	if f.level > 0 {
		return found.Below(ctx, f.level)
	}
	rows := make([]int, len(found.Rows))
	for i, row := range found.Rows {
		rows[i] = int(row)
	}
	return rows, nil
}
