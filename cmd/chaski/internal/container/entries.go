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
		Short: "List the byte ranges of all samples of a level, for programs",
		Long: `List the samples of one level of containers by column. The Python package uses this command.

--format npy writes NumPy arrays, one after the other, with one element for each sample that is not a
placeholder:

  row           int64: its row in the table of the level
  parent        int64: its row in the level above, or -1
  folder        uint8: 1 if it has children
  file          int32: number of the file that holds it
  offset, size  int64: its bytes in the file; both are -1 if it is the whole file

Two lists of strings follow, the ids and the names of the files. Each is two arrays: the end of every
string (int64) and the bytes of all strings (uint8, UTF-8).

--given lists only the samples that meet its conditions: at level 0 in the order of the conditions, below
it without the rows that a condition on place or time of that level drops.

--format json writes one object about the dataset: "format", "levels", "id_column", "parts" and
"collection".`,
		Example: `  chaski entries --format json data.tacozip
  chaski entries --level 1 data.tacozip > level1.npys`,
		Args: console.AtLeastOne("CONTAINER"),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if err := console.OneOf("format", f.format, "npy", "json"); err != nil {
				return err
			}
			if err := console.AtLeast("level", f.level, 0); err != nil {
				return err
			}
			return f.warn(env, f.run(cmd.Context(), env, paths))
		},
	}
	fl := cmd.Flags()
	f.containerFlags.add(fl)
	f.conditionFlags.add(fl)
	f.sql = env.SQL
	fl.IntVar(&f.level, "level", 0, "`LEVEL` to list")
	fl.StringVar(&f.format, "format", "npy", "npy or json")
	return cmd
}

// datasetInfo is what --format json prints.
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
