package container

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/containers"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/arrays"
)

type lsFlags struct {
	containerFlags
	flags.Filter
	leaves, sha256, padding bool
	levelName               string
	level                   int   // of levelName
	named                   []int // the rows of a level with a name; nil for a number
	format                  string
}

func NewLs(env console.Env) *cobra.Command {
	var f lsFlags
	cmd := console.Command("ls [flags] CONTAINER...", console.AtLeastOne("CONTAINER"),
		func(cmd *cobra.Command, paths []string) error { return f.warn(env, f.run(cmd.Context(), env, paths)) })
	defined := cmd.Flags()
	f.containerFlags.add(defined)
	f.Filter.Add(defined)
	console.Var(defined, &f.leaves, "leaves", false)
	console.Var(defined, &f.sha256, "sha256", false)
	console.Var(defined, &f.padding, "padding", false)
	console.Var(defined, &f.levelName, "level", "0")
	console.ChoiceVar(defined, &f.format, "format", "text", "text", "json")
	return cmd
}

func (f *lsFlags) run(ctx context.Context, env console.Env, paths []string) error {
	number, notNumber := strconv.Atoi(f.levelName)
	f.level = number
	if err := console.AtLeast("level", number, 0); err != nil {
		return err
	}
	switch {
	case f.sha256 && !f.leaves:
		return console.Usagef("--sha256 needs --leaves")
	case f.leaves && f.levelName != "0":
		return console.Usagef("--level is %s, but --leaves lists samples of all levels", f.levelName)
	}
	filter, err := f.TacoFilter()
	if err != nil {
		return err
	}
	kind, err := store.Of(ctx, env.Files, paths[0])
	if err != nil {
		return err
	}
	if kind, ok := kind.(store.Files); ok {
		return f.listArrays(ctx, env.Out, env.Files, kind, paths)
	}
	var prune []spacetime.Filter
	if filter != nil { // files without matching rows are not opened
		prune = append(prune, *filter)
	}
	dataset, err := f.open(ctx, env.Files, paths, prune...)
	if err != nil {
		return err
	}
	defer dataset.Close()
	if notNumber != nil {
		if dataset.LevelNames() == nil {
			return console.Usagef("--level is %q: the levels of a %s have numbers from 0", f.levelName,
				dataset.Form())
		}
		if f.level, f.named, err = dataset.LevelRows(ctx, f.levelName); err != nil {
			return err
		}
	}
	var left store.Selection // the rows that --bbox and --datetime leave; nil for all
	if filter != nil {
		if left, err = dataset.Select(ctx, *filter); err != nil {
			return err
		}
	}
	writer := bufio.NewWriterSize(env.Out, 1<<16)
	if f.leaves {
		err = f.listLeaves(ctx, writer, env.Files, dataset, left)
	} else {
		err = f.listRows(ctx, writer, dataset, left)
	}
	return cmp.Or(err, writer.Flush())
}

// listRows lists a level.
func (f *lsFlags) listRows(ctx context.Context, w io.Writer, d containers.Set, left store.Selection) error {
	if d.Levels() == 0 { // no file of the TACOLLECTION.json can match
		return nil
	}
	table, err := d.Level(ctx, f.level)
	if err != nil {
		return err
	}
	rows, err := f.rows(ctx, d, left, table.Len())
	if err != nil {
		return err
	}
	if rows, err = f.Choose(ctx, d, f.level, rows); err != nil {
		return err
	}
	rows = f.Cut(rows)
	if f.format == "text" {
		return f.listText(ctx, w, d, rows)
	}
	return writeRows(ctx, w, table, rows)
}

// rows returns the rows of the listed level that --padding, --bbox and --datetime leave. The level has n rows.
func (f *lsFlags) rows(ctx context.Context, d containers.Set, left store.Selection, n int) ([]int, error) {
	var rows []int
	var err error
	if f.padding {
		rows = num.Range[int](0, n)
	} else if rows, err = d.Visible(ctx, f.level); err != nil {
		return nil, err
	}
	if f.named != nil {
		rows = flags.Among(rows, f.named)
	}
	if left == nil {
		return rows, nil
	}
	below, err := d.RowsBelow(ctx, left, f.level)
	return flags.Among(rows, below), err
}

// writeRows writes rows as JSON with all columns.
func writeRows(ctx context.Context, w io.Writer, t *tables.Table, rows []int) error {
	// For few rows only the pages that hold them are read. From a quarter of the rows on most pages hold one,
	// so whole columns cost about the same.
	if len(rows) < t.Len()/4 && slices.IsSorted(rows) {
		t, rows = t.Take(rows), num.Range[int](0, len(rows))
	}
	cols, err := vectors(ctx, t)
	if err != nil {
		return err
	}
	names := make([][]byte, len(cols))
	for i, column := range t.Columns() {
		if names[i], err = json.Marshal(column.Name); err != nil {
			return err
		}
	}
	var line []byte
	for _, row := range rows {
		line = append(line[:0], '{')
		for i, values := range cols {
			if i > 0 {
				line = append(line, ',')
			}
			line = append(append(line, names[i]...), ':')
			line = values.AppendJSON(line, row)
		}
		line = append(line, '}', '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// listText prints the path, the kind and the byte range of each row.
func (f *lsFlags) listText(ctx context.Context, w io.Writer, d containers.Set, rows []int) error {
	for _, row := range rows {
		e, err := d.Entry(ctx, f.level, row)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\n", console.Printable(e.Path), e.Type(),
			console.Printable(e.VSI())); err != nil {
			return err
		}
	}
	return nil
}

// listArrays lists the arrays of groups.
func (f *lsFlags) listArrays(ctx context.Context, w io.Writer, files source.Opener, kind store.Arrays,
	paths []string) error {
	for _, p := range paths {
		group, err := rows.OpenArrays(ctx, kind, p, nil, loader.Options{Opener: files}.WithDefaults())
		if err != nil {
			return err
		}
		described, err := group.Describe(ctx, p)
		if err != nil {
			return err
		}
		info, _ := described.(*arrays.Info)
		for k := range info.Arrays {
			array := &info.Arrays[k]
			if f.format == "json" {
				err = json.NewEncoder(w).Encode(array)
			} else {
				_, err = fmt.Fprintf(w, "%s\t%v\t%s%s\n", console.Printable(array.Path), array.Shape,
					array.DType, console.Printable(array.Unreadable))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// leafRoots applies --where and --order-by to the samples of level 0, whose leaves are listed.
func (f *lsFlags) leafRoots(ctx context.Context, d containers.Set, roots []int) ([]int, error) {
	if f.Where == "" && f.OrderBy == "" || d.Levels() == 0 {
		return roots, nil
	}
	if roots == nil {
		var err error
		if roots, err = d.Visible(ctx, 0); err != nil {
			return nil, err
		}
	}
	return f.Choose(ctx, d, 0, roots)
}

// hashBytes is how much of a sample is read at once for its hash: 256 KiB stay in a processor's cache
// while they are hashed.
const hashBytes = 1 << 18

// Leaf is what --leaves prints.
type Leaf struct {
	Path   string `json:"path"`
	Offset *int64 `json:"offset"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"`
}

// listLeaves lists the samples that have bytes, below the samples of level 0 that the flags leave.
func (f *lsFlags) listLeaves(ctx context.Context, w io.Writer, files source.Opener, d containers.Set,
	left store.Selection) error {
	var roots []int // nil: all
	if left != nil {
		roots = left[0]
	}
	roots, err := f.leafRoots(ctx, d, roots)
	if err != nil {
		return err
	}
	buf := make([]byte, hashBytes)
	below := map[int][]int{} // the rows that --bbox and --datetime leave, by levels below 0
	count := 0
	print := func(e store.Entry, err error) error {
		if err == nil && e.Level > 0 && len(left) > 1 {
			var in bool
			if in, err = isLeft(ctx, d, left, below, e); err == nil && !in {
				return nil
			}
		}
		if err != nil {
			return err
		}
		if count++; count <= f.Offset || f.Limit >= 0 && count > f.Offset+f.Limit {
			return nil
		}
		return f.listLeaf(ctx, w, files, e, buf)
	}
	if roots == nil {
		for e, err := range d.Leaves(ctx, f.padding) {
			if err := print(e, err); err != nil {
				return err
			}
		}
		return nil
	}
	for _, row := range roots {
		e, err := d.Entry(ctx, 0, row)
		if err != nil {
			return err
		}
		for e, err := range d.LeavesOf(ctx, e, f.padding) {
			if err := print(e, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// isLeft reports whether --bbox and --datetime leave a sample below level 0. known caches the rows of
// levels, since finding them reads a table.
func isLeft(ctx context.Context, d containers.Set, left store.Selection, known map[int][]int,
	e store.Entry) (bool, error) {
	rows, ok := known[e.Level]
	if !ok {
		var err error
		if rows, err = d.RowsBelow(ctx, left, e.Level); err != nil {
			return false, err
		}
		known[e.Level] = rows
	}
	_, in := slices.BinarySearch(rows, e.Row)
	return in, nil
}

// listLeaf prints one sample. It opens the sample only for its hash or size.
func (f *lsFlags) listLeaf(ctx context.Context, w io.Writer, files source.Opener, e store.Entry, buf []byte) error {
	leaf := Leaf{Path: e.Path, Size: e.Size}
	if e.Offset != store.Whole {
		leaf.Offset = &e.Offset
	}
	if f.sha256 || e.Size == store.Whole {
		file, err := e.Open(ctx, files)
		if err != nil {
			return err
		}
		leaf.Size = file.Size()
		if f.sha256 {
			leaf.SHA256, err = hashReader(ctx, file, buf)
		}
		if err = cmp.Or(err, file.Close()); err != nil {
			return err
		}
	}
	if f.format == "json" {
		return console.PrintJSON(w, leaf)
	}
	_, err := fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", console.Printable(leaf.Path), leaf.Size, leaf.SHA256,
		console.Printable(e.VSI()))
	return err
}

// hashReader returns the SHA-256 of all bytes of r.
func hashReader(ctx context.Context, r source.Reader, buf []byte) (string, error) {
	hash := sha256.New()
	_, err := io.CopyBuffer(hash, source.Sequential(ctx, r), buf)
	return hex.EncodeToString(hash.Sum(nil)), err
}
