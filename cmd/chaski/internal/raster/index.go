package raster

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/shards"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/catalog/members"
	"github.com/chaski-eo/chaski/store/catalog/tableinfo"
)

// indexEnds has the formats whose endings files have, for each format of --format.
var indexEnds = map[string][]*magic.Format{"hex": {magic.Named(".txt")}, "json": {console.JSON},
	"parquet": {magic.Named(".parquet")}}

type indexFlags struct {
	format  string
	out     string
	options build.Options
	resume  bool
	skipBad bool
	join    build.Join
	fields  []string
	shards  shards.Flags
}

func NewIndex(env console.Env) *cobra.Command {
	var f indexFlags
	cmd := console.Command("index [flags] PATH...", console.AtLeastOne("PATH"),
		func(cmd *cobra.Command, paths []string) error {
			if !cmd.Flags().Changed("format") && (len(f.fields) > 0 || catalog.IsParquet(f.out)) {
				f.format = "parquet"
			} else if !cmd.Flags().Changed("format") && console.EndsLike(f.out) != nil {
				return console.Usagef("-o %s: a catalog is a Parquet file, whose name ends in .parquet", f.out)
			}
			err := cmp.Or(console.EndsLike(f.out, indexEnds[f.format]...), f.shards.Check(cmd.Flags(), f.out))
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), env, paths)
		})
	defined := cmd.Flags()
	console.ChoiceVar(defined, &f.format, "format", "hex", "hex", "parquet", "json")
	console.Var(defined, &f.out, "output,o", "-")
	console.CountVar(defined, &f.options.Workers, "workers", 0, 0)
	console.Var(defined, &f.options.Absolute, "absolute", false)
	flags.AddMaxChunk(defined, &f.options.MaxChunk)
	console.Var(defined, &f.resume, "resume", false)
	console.Var(defined, &f.skipBad, "skip-bad", false)
	console.Var(defined, &f.fields, "field", nil)
	console.Var(defined, &f.options.DropIncomplete, "drop-missing", false)
	console.Var(defined, &f.join.Table, "join", "")
	console.Var(defined, &f.join.On, "on", "")
	console.Var(defined, &f.join.Left, "join-left", false)
	f.shards.Add(defined)
	return cmd
}

func (f *indexFlags) check() error {
	catalogued := f.format == "parquet"
	switch {
	case !catalogued && f.resume:
		return console.Usagef("--resume needs --format parquet")
	case !catalogued && f.skipBad:
		return console.Usagef("--skip-bad needs --format parquet")
	case !catalogued && f.join != build.Join{}:
		return console.Usagef("--join, --on and --join-left need --format parquet")
	case len(f.fields) > 0 && !catalogued:
		return console.Usagef("--field needs --format parquet")
	case len(f.fields) > 0 && (f.resume || f.join != build.Join{}):
		return console.Usagef("--field excludes --resume and --join")
	case f.options.DropIncomplete && len(f.fields) == 0:
		return console.Usagef("--drop-missing needs --field")
	case f.join.Table != "" && f.join.On == "":
		return console.Usagef("--join %s needs --on COLUMN", f.join.Table)
	case f.join.Table == "" && (f.join.On != "" || f.join.Left):
		return console.Usagef("--on and --join-left need --join TABLE")
	case !catalogued && f.shards.Given():
		return console.Usagef("--shard and --merge need --format parquet")
	case f.resume && (f.out == "-" || f.out == "" || source.IsRemote(f.out)):
		return console.Usagef("--resume needs -o FILE, a local file whose rows it keeps")
	}
	return nil
}

func (f *indexFlags) run(ctx context.Context, env console.Env, paths []string) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.format == "json" {
		return env.WriteFile(ctx, f.out, func(w io.Writer) error {
			return describeRumi(ctx, w, env.In, env.Files, paths)
		})
	}
	for _, path := range paths {
		if len(f.fields) > 0 || !magic.Named(path).Class.Table() {
			continue
		}
		if kind, err := store.Of(ctx, env.Files, path); err != nil || kind == store.Other {
			return console.Usagef("%s is a table: --field NAME=COLUMN names its column of rasters", path)
		}
	}
	if f.format == "hex" {
		for _, path := range paths {
			if st, err := os.Stat(source.LocalPath(path)); err == nil && st.IsDir() {
				return console.Usagef("%s is a directory: a catalog of it needs -o NAME.parquet or --format parquet",
					path)
			}
		}
		return env.WriteFile(ctx, f.out, func(w io.Writer) error { return f.hex(ctx, w, env.Files, paths) })
	}
	if err := console.NotToTerminal(f.out, env.Out, "a catalog"); err != nil {
		return err
	}
	return f.parquet(ctx, env, paths)
}

// parquet writes a catalog, and prints the numbers of files it left out on standard error.
func (f *indexFlags) parquet(ctx context.Context, env console.Env, paths []string) error {
	bar := console.NewBar(env.Err, "indexing")
	var counts build.Counts
	var skipped, leftOut []string
	options := f.options
	options.Base, options.Opener, options.Counts = pathname.Dir(f.out), env.Files, &counts
	options.Absolute = options.Absolute || source.IsRemote(f.out) // local paths lie below no URI
	options.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	options.LeftOut = func(column string) { leftOut = append(leftOut, column) }
	options.Members = func(ctx context.Context, path string) ([]build.Member, error) {
		return members.Of(ctx, env.Files, path)
	}
	if f.skipBad {
		options.Skipped = func(_ string, err error) { skipped = append(skipped, fault.Line(err)) }
	}
	if f.join.Table != "" {
		options.Join = &f.join
	}
	var err error
	if options.Fields, err = pairFields(f.fields, paths[0]); err != nil {
		return err
	}
	switch {
	case f.shards.Given():
		err = f.divided(ctx, env, paths, options)
	case f.resume:
		err = f.resumed(ctx, env, paths, options)
	default:
		err = env.WriteFile(ctx, f.out, func(w io.Writer) error {
			_, err := build.Write(ctx, w, paths, options)
			return err
		})
	}
	bar.Done()
	if err != nil {
		return err
	}
	if f.shards.Given() && !f.shards.Merging() {
		// Nothing is printed here, since the merge says what the shards have left out.
		return nil
	}
	// After the catalog is written, so a command that fails prints only its error.
	for _, line := range skipped {
		fmt.Fprintf(env.Err, "chaski: skipped: %s\n", line)
	}
	if len(leftOut) > 0 {
		fmt.Fprintf(env.Err, "chaski: columns left out: %q\n", leftOut)
	}
	for _, missing := range []struct {
		n    int
		what string
	}{
		{counts.Skipped, "files skipped"}, {counts.Incomplete, "incomplete samples left out"},
		{counts.Unmatched, "files without a row in " + f.join.Table},
		{counts.Unused, "rows of " + f.join.Table + " without a file"},
	} {
		if missing.n > 0 {
			fmt.Fprintf(env.Err, "chaski: %s: %d\n", missing.what, missing.n)
		}
	}
	return nil
}

// divided reads a share of the files, or writes the catalog of all parts.
func (f *indexFlags) divided(ctx context.Context, env console.Env, paths []string, o build.Options) (err error) {
	if f.resume && !f.shards.Merging() {
		o.Previous = []string{f.out}
	}
	list, err := build.List(ctx, paths, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	work := shards.Work{Output: f.out, Inputs: list.Hash(), Items: int64(list.Len()),
		Settings: []any{f.fields, f.options.Absolute, f.skipBad, f.options.MaxChunk},
		Env:      env,
		Files: func(_ context.Context, i int64) (files []shards.File, _ error) {
			for path, etag := range list.Files(int(i)) {
				files = append(files, shards.File{Name: path, ETag: etag})
			}
			return files, nil
		}}
	return f.shards.Do(ctx, work, func(s shards.Share, body io.Writer) (any, error) {
		return list.WritePart(ctx, body, int(s.First), int(s.Count))
	}, func(parts iter.Seq2[*shards.Part, error]) error {
		return env.WriteFile(ctx, f.out, func(w io.Writer) error {
			_, err := list.Merge(ctx, w, shards.As(parts, catalogPart))
			return err
		})
	})
}

// catalogPart returns a part as package build takes it.
func catalogPart(p *shards.Part) (*build.Part, error) {
	skipped, err := shards.ParseTally[[]build.SkippedFile](p)
	return &build.Part{First: int(p.First), Count: int(p.Count), Body: p.Body, Skipped: skipped}, err
}

// pairFields parses the fields of a catalog of pairs, of a directory, glob or table.
func pairFields(texts []string, path string) (out []catalog.Source, err error) {
	fields, err := flags.ParseFields(texts)
	if err != nil {
		return nil, err
	}
	for i, p := range fields {
		if p.Pattern == "" && !catalog.IsTable(path) {
			return nil, console.Usagef("--field is %q: a catalog of pairs needs NAME=PATTERN with a name such as {id} "+
				"in the pattern", texts[i])
		}
		out = append(out, catalog.Source{Field: p.Name, Pattern: p.Pattern, Column: p.Column})
	}
	return out, nil
}

// resumed writes the catalog with the rows of the existing catalog and of an interrupted earlier run.
func (f *indexFlags) resumed(ctx context.Context, env console.Env, paths []string, o build.Options) error {
	partial := f.out + ".partial"
	o.Previous, o.Partial = []string{partial, f.out}, true
	// This run writes a third file, which replaces the catalog if it is complete and the partial one
	// otherwise: it must not overwrite either while it reads their rows.
	mine := f.out + ".resumed"
	var done error
	err := env.WriteFile(ctx, mine, func(w io.Writer) error {
		var rows int
		if rows, done = build.Write(ctx, w, paths, o); done != nil && int64(rows) <= rowsIn(ctx, o.Opener, partial) {
			// The earlier run got further, so its file stays.
			return done
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case done != nil:
		return cmp.Or(console.FileError(partial, durable.Rename(mine, partial)), done)
	}
	if err := durable.Rename(mine, f.out); err != nil {
		return console.FileError(f.out, err)
	}
	if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return console.FileError(partial, err)
	}
	return nil
}

// rowsIn returns the number of rows of a catalog, or 0 if the file is not one. It also reads after an interruption.
func rowsIn(ctx context.Context, files source.Opener, name string) int64 {
	ctx = context.WithoutCancel(ctx)
	file, err := files.Open(ctx, name)
	if err != nil {
		return 0
	}
	defer file.Close()
	sum, err := tableinfo.Parquet(ctx, file)
	if err != nil {
		return 0
	}
	return sum.Rows
}

func (f *indexFlags) hex(ctx context.Context, w io.Writer, files source.Opener, paths []string) error {
	for _, p := range paths {
		_, meta, err := catalog.OpenAsset(ctx, files, p, f.options.MaxChunk)
		if err != nil {
			return err
		}
		blob, err := meta.Header()
		if err != nil {
			return fault.WithFile(err, p)
		}
		if _, err := io.WriteString(w, hex.EncodeToString(blob)+"\n"); err != nil {
			return err
		}
	}
	return nil
}
