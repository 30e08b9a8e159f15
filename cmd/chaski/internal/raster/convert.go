package raster

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/shards"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/source"
)

type convertFlags struct {
	encoding
	out       string
	overwrite bool
	skipBad   bool
	workers   int
	shards    shards.Flags

	dims, attr string // of arrays
	at         flags.Timestamp

	steps string // of rumi3
	stack bool
}

func NewConvert(env console.Env) *cobra.Command {
	var f convertFlags
	cmd := console.Command("convert [flags] SRC... -o DST", console.AtLeastOne("SRC"),
		func(cmd *cobra.Command, paths []string) error {
			if err := f.shards.Check(cmd.Flags(), f.out); err != nil {
				return err
			}
			return f.run(cmd.Context(), env, paths)
		})
	f.add(cmd)
	return cmd
}

// add declares the flags of cmd.
func (f *convertFlags) add(cmd *cobra.Command) {
	defined := cmd.Flags()
	console.Var(defined, &f.out, "output,o", "")
	f.encoding.add(defined)
	f.at.Add(defined)
	console.Var(defined, &f.dims, "dims", "")
	console.Var(defined, &f.attr, "attr", "")
	console.Var(defined, &f.steps, "t", "")
	console.Var(defined, &f.stack, "stack", false)
	console.CountVar(defined, &f.workers, "workers", 0, 0)
	console.Var(defined, &f.overwrite, "overwrite", false)
	console.Var(defined, &f.skipBad, "skip-bad", false)
	f.shards.Add(defined)
	flags.AddMaxChunk(defined, &f.o.MaxChunk)
}

func (f *convertFlags) run(ctx context.Context, env console.Env, paths []string) error {
	if err := f.resolve(); err != nil {
		return err
	}
	f.o.Opener = env.Files
	jobs, err := f.jobs(ctx, env.Files, paths)
	if err != nil {
		return err
	}
	if f.shards.Given() {
		return f.divided(ctx, env, jobs)
	}
	results, err := f.convertAll(ctx, env, jobs)
	if err != nil {
		return err
	}
	report(env.Err, jobs, results)
	return nil
}

// converted says what became of a conversion.
type converted struct {
	Left  []string `json:"left,omitempty"`  // properties of the source that the file does not have
	Error string   `json:"error,omitempty"` // why it was left out
}

// convertAll does conversions.
func (f *convertFlags) convertAll(ctx context.Context, env console.Env, jobs []fileConversion) ([]converted, error) {
	// Workers go to files first and to the tiles of a file last, because files need not wait for each
	// other's slowest tile.
	atOnce := min(f.workers, len(jobs))
	f.o.Workers = max(1, f.workers/max(atOnce, 1))
	bar := console.NewBar(env.Err, "converting")
	defer bar.Done()
	if len(jobs) == 1 {
		f.o.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	}
	results := make([]converted, len(jobs))
	var done atomic.Int64
	err := each.Of(ctx, int64(len(jobs)), atOnce, func(ctx context.Context, i int64) error {
		if err := f.convert(ctx, env, jobs[i], &results[i]); err != nil {
			return err
		}
		if len(jobs) > 1 {
			bar.Set(done.Add(1), int64(len(jobs)))
		}
		return nil
	})
	return results, err
}

// divided does a share of the conversions, or reports what all shares have left out.
func (f *convertFlags) divided(ctx context.Context, env console.Env, jobs []fileConversion) (err error) {
	work := shards.Work{Output: f.out, Settings: []any{f.o, f.o.MaxChunk, f.steps, f.skipBad}, Items: int64(len(jobs)),
		Env: env,
		Files: func(_ context.Context, i int64) ([]shards.File, error) {
			return []shards.File{{Name: jobs[i].src}}, nil
		}}
	work.Inputs, err = shards.Hash(func(yield func([]any) bool) {
		for _, j := range jobs {
			if !yield([]any{[]byte(j.src), []byte(j.dst), j.image}) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if !f.shards.Merging() && !source.IsRemote(f.out) {
		// The part lies beside DST, which may be in a folder that is not there yet.
		above := pathname.Dir(pathname.Trim(f.out))
		if err := durable.MkdirAll(above); err != nil {
			return console.FileError(above, err)
		}
	}
	work.Check = func(ctx context.Context, p *shards.Part) error { return stillThere(ctx, env, p, jobs) }
	return f.shards.Do(ctx, work, func(s shards.Share, _ io.Writer) (any, error) {
		return f.convertAll(ctx, env, jobs[s.First:s.First+s.Count])
	}, func(parts iter.Seq2[*shards.Part, error]) error {
		var all []converted
		for results, err := range shards.As(parts, convertedBy) {
			if err != nil {
				return err
			}
			all = append(all, results...)
		}
		report(env.Err, jobs, all)
		return nil
	})
}

// convertedBy returns what became of the conversions of a shard.
func convertedBy(p *shards.Part) ([]converted, error) {
	results, err := shards.ParseTally[[]converted](p)
	if err == nil && int64(len(results)) != p.Count {
		err = fault.New(fault.Corrupt, "part", "%d files, not %d", len(results), p.Count)
	}
	return results, err
}

// stillThere returns an error if a file that a shard wrote is gone: its part lies beside DST, and somebody who removes
// DST may leave the part.
func stillThere(ctx context.Context, env console.Env, p *shards.Part, jobs []fileConversion) error {
	results, err := convertedBy(p)
	if err != nil {
		return err
	}
	// Several go on at a time, since a network file system answers them together.
	const atOnce = 16
	return each.Of(ctx, p.Count, atOnce, func(ctx context.Context, i int64) error {
		if results[i].Error != "" {
			return nil
		}
		err := env.Exists(ctx, jobs[p.First+i].dst)
		if fault.KindOf(err) == fault.NotFound {
			return fault.New(fault.NotFound, "part", "%s, which it tells of, is not there", jobs[p.First+i].dst)
		}
		return err
	})
}

// report says which files were left out, and the properties that the new files lack: rasters with the same losses share
// a line, because a directory mostly holds rasters of one kind. It runs after the last file, because a command that
// fails prints one line, its error.
func report(w io.Writer, jobs []fileConversion, results []converted) {
	skipped := 0
	var kinds []string // of losses, in the order of the first raster that has each
	rasters := map[string][]string{}
	for i, result := range results {
		if result.Error != "" {
			skipped++
			fmt.Fprintf(w, "chaski: skipped: %s\n", result.Error)
		}
		if len(result.Left) > 0 {
			kind := strings.Join(result.Left, ", ")
			if rasters[kind] == nil {
				kinds = append(kinds, kind)
			}
			rasters[kind] = append(rasters[kind], jobs[i].src)
		}
	}
	if skipped > 0 {
		fmt.Fprintf(w, "chaski: files skipped: %d\n", skipped)
	}
	for _, kind := range kinds {
		others := ""
		if n := len(rasters[kind]) - 1; n > 0 {
			others = fmt.Sprintf(" and %d more", n)
		}
		fmt.Fprintf(w, "chaski: %s\n", console.Printable("warning: "+rasters[kind][0]+others+": left out: "+kind))
	}
}

// resolve fills in defaults and checks the flags.
func (f *convertFlags) resolve() error {
	if f.out == "" {
		return console.Usagef("-o DST is missing")
	}
	if f.to == "" && strings.EqualFold(filepath.Ext(f.out), ".rumi") {
		f.to = convert.Rumi2
	}
	if err := f.encoding.resolve(); err != nil {
		return err
	}
	if f.stack && f.to != convert.Rumi3 {
		return console.Usagef("--stack needs --to %s", convert.Rumi3)
	}
	if f.stack && (f.shards.Given() || f.skipBad) {
		return console.Usagef("--shard, --merge and --skip-bad are for several files: --stack writes one")
	}
	if f.shards.Given() && !f.overwrite {
		return console.Usagef("--shard and --merge need --overwrite: a shard that is done again replaces its files")
	}
	var err error
	if f.o.Steps, err = raster.ParseSelection(f.steps); err != nil {
		return console.Usagef("--t is %q: it must be start:stop, or a list of indices such as 0,2", f.steps)
	}
	f.workers = cmp.Or(f.workers, procs.Workers())
	f.o.Workers = f.workers
	if err := f.o.Check(); err != nil {
		return console.WrongUsage(err)
	}
	return nil
}

// convert does a conversion. The destination "-" is standard output.
func (f *convertFlags) convert(ctx context.Context, env console.Env, j fileConversion, result *converted) error {
	if !source.IsRemote(j.dst) {
		if err := durable.MkdirAll(pathname.Dir(j.dst)); err != nil {
			return console.FileError(pathname.Dir(j.dst), err)
		}
	}
	send := env.WriteFile
	if !f.overwrite {
		send = env.WriteNew
	}
	var bad error // a fault of the source
	err := send(ctx, j.dst, func(w io.Writer) (err error) {
		writer := bufio.NewWriterSize(w, 1<<20)
		result.Left, err = f.encode(ctx, writer, j)
		switch {
		// An error of the operating system is about the destination, because errors of a source have a kind:
		// it must not name the source.
		case console.SystemKind(err) != 0:
			return err
		case err != nil:
			bad = fault.WithFile(err, j.src)
			return bad
		}
		return writer.Flush()
	})
	if bad != nil && f.skipBad && fault.KindOf(bad) != 0 && ctx.Err() == nil {
		*result = converted{Error: fault.Line(bad)}
		return nil
	}
	return err
}

// encode writes the file of a conversion, and returns which properties of the source it does not have.
func (f *convertFlags) encode(ctx context.Context, w io.Writer, j fileConversion) ([]string, error) {
	switch {
	case j.images != nil:
		return nil, convert.Image(ctx, w, j.images.Index(j.image), f.o)
	case f.stack:
		return convert.File(ctx, w, j.stack, f.o)
	}
	return convert.File(ctx, w, []string{j.src}, f.o)
}
