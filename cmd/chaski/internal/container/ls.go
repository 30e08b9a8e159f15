package container

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query"
)

type lsFlags struct {
	containerFlags
	flags.Filter
	leaves, sha256, padding bool
	level                   int
	format                  string
}

func NewLs(env console.Env) *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:   "ls [flags] CONTAINER...",
		Short: "List the samples of containers",
		Long: `List the rows of a level of TACO containers (ZIP, folder, __TACOCAT__, .tacocat,
TACOLLECTION.json, .taco) and Tortillas, or with --leaves every sample that has bytes, with
its path and byte range. Several containers are listed one after the other. Of a Tortilla in
parts, all parts are named, or one, or the whole as data.tortilla for data.0000.part.tortilla
and so on.

With --format json: one line of JSON a row, with all columns that are stored, or a leaf:
{"path","offset","size"} and with --sha256 "sha256"; the offset is null where a sample is a file.`,
		Example: `  chaski ls data.tacozip
  chaski ls --leaves --sha256 --format json data.tacozip
  chaski ls --bbox=-180,-60,-60,0 --datetime 2015-01-01/2015-03-31 data.tacozip`,
		Args: console.AtLeastOne("CONTAINER"),
		RunE: func(cmd *cobra.Command, paths []string) error { return f.told(env, f.run(cmd.Context(), env, paths)) },
	}
	fl := cmd.Flags()
	f.containerFlags.add(fl)
	f.Filter.Add(fl)
	fl.BoolVar(&f.leaves, "leaves", false, "samples that have bytes, of all levels")
	fl.BoolVar(&f.sha256, "sha256", false, "with --leaves: read the bytes and tell their hash")
	fl.BoolVar(&f.padding, "padding", false, "show placeholders too, and the histograms that a streaming TACO holds among its samples")
	fl.IntVar(&f.level, "level", 0, "level to list")
	fl.StringVar(&f.format, "format", "text", "text or json")
	return cmd
}

func (f *lsFlags) run(ctx context.Context, env console.Env, paths []string) error {
	if err := console.OneOf("format", f.format, "text", "json"); err != nil {
		return err
	}
	if f.level < 0 || f.OffsetRows < 0 || f.sha256 && !f.leaves {
		return console.Usagef("--level and --offset are at least 0, and --sha256 goes with --leaves")
	}
	if f.leaves && f.level != 0 {
		return console.Usagef("--leaves lists samples of all levels: --level does not go with it")
	}
	only, err := f.TacoFilter()
	if err != nil {
		return err
	}
	files := open.NewOpener(true)
	defer files.Close()
	var prune []taco.Filter
	if only != nil && query.RowWise(f.Where) { // another --where needs the rows of all files
		prune = append(prune, *only)
	}
	d, err := f.open(ctx, files, paths, prune...)
	if err != nil {
		return err
	}
	defer d.Close()
	var left taco.Left // by --bbox and --datetime; nil: all
	if only != nil {
		if left, err = d.Narrow(ctx, *only); err != nil {
			return err
		}
	}
	w := bufio.NewWriterSize(env.Out, 1<<16)
	if f.leaves {
		err = f.listLeaves(ctx, w, files, d, left)
	} else {
		err = f.listRows(ctx, w, d, left)
	}
	return console.FirstError(err, w.Flush())
}

// listRows lists a level.
func (f *lsFlags) listRows(ctx context.Context, w io.Writer, d *taco.Dataset, left taco.Left) error {
	if d.Levels() == 0 { // no file of a TACOLLECTION.json can match
		return nil
	}
	t, err := d.Level(ctx, f.level)
	if err != nil {
		return err
	}
	rows, err := f.rows(ctx, d, left, t.Len())
	if err != nil {
		return err
	}
	if rows, err = f.choose(ctx, t, rows); err != nil {
		return fault.WithFile(err, d.Parts()[0])
	}
	if f.format == "text" {
		return f.listText(ctx, w, d, t, rows)
	}
	return writeRows(ctx, w, t, rows)
}

// rows returns the rows of the listed level that --padding, --bbox and --datetime leave. n is how many it has.
func (f *lsFlags) rows(ctx context.Context, d *taco.Dataset, left taco.Left, n int) ([]int, error) {
	var rows []int
	var err error
	if f.padding {
		rows = make([]int, n)
		for i := range rows {
			rows[i] = i
		}
	} else if rows, err = d.Visible(ctx, f.level); err != nil {
		return nil, err
	}
	if left == nil {
		return rows, nil
	}
	below, err := d.RowsBelow(ctx, left, f.level)
	return slices.DeleteFunc(rows, func(row int) bool { return !hasRow(below, row) }), err
}

// choose applies --where, --order-by, --offset and --limit.
func (f *lsFlags) choose(ctx context.Context, t *tables.Table, rows []int) ([]int, error) {
	rows, err := flags.ChooseRows(ctx, t, rows, f.Where, f.OrderBy)
	if err != nil {
		return nil, err
	}
	rows = rows[min(f.OffsetRows, len(rows)):]
	if f.Limit >= 0 {
		rows = rows[:min(f.Limit, len(rows))]
	}
	return rows, nil
}

// writeRows writes rows as JSON, with all columns.
func writeRows(ctx context.Context, w io.Writer, t *tables.Table, rows []int) error {
	cols := make([]*tables.Vector, len(t.Columns()))
	names := make([][]byte, len(cols))
	few := len(rows) < t.Len()/4 && slices.IsSorted(rows)
	for i, c := range t.Columns() {
		var err error
		if few {
			cols[i], err = t.Pick(ctx, i, rows)
		} else {
			cols[i], err = t.At(ctx, i)
		}
		if err != nil {
			return err
		}
		if names[i], err = json.Marshal(c.Name); err != nil {
			return err
		}
	}
	var line []byte
	for k, row := range rows {
		if few {
			row = k
		}
		line = append(line[:0], '{')
		for i, c := range cols {
			if i > 0 {
				line = append(line, ',')
			}
			line = append(append(line, names[i]...), ':')
			line = c.AppendJSON(line, row)
		}
		line = append(line, '}', '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// listText prints a path, what it is, and where a file is.
func (f *lsFlags) listText(ctx context.Context, w io.Writer, d *taco.Dataset, _ *tables.Table, rows []int) error {
	for _, row := range rows {
		e, err := d.Entry(ctx, f.level, row)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\t%v\t%s\n", console.Printable(e.Path), e.Kind, console.Printable(taco.VSI(e))); err != nil {
			return err
		}
	}
	return nil
}
