package container

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/shards"
	"github.com/chaski-eo/chaski/draw/report"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/build"
)

type makeFlags struct {
	out, stats    string
	page          string
	form          formFlags
	workers       int
	memory        int64
	maxChunk      int
	quiet, resume bool
	shards        shards.Flags
}

// NewMake returns the command make.
func NewMake(env console.Env) *cobra.Command {
	var f makeFlags
	cmd := console.Command("make -o OUT [flags] RECIPE", console.ExactlyOne("RECIPE"),
		func(cmd *cobra.Command, args []string) error {
			if err := f.shards.Check(cmd.Flags(), f.out); err != nil {
				return err
			}
			return f.run(cmd.Context(), env, args[0])
		})
	defined := cmd.Flags()
	console.Var(defined, &f.out, "output,o", "")
	// 'chaski convert' says --to for the same.
	defined.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "to" {
			name = "form"
		}
		return pflag.NormalizedName(name)
	})
	f.form.add(defined, madeForms...)
	console.NonEmptyVar(defined, &f.stats, "stats")
	console.NonEmptyVar(defined, &f.page, "report")
	console.NumberVar(defined, &f.workers, "workers", 0, 0, flags.MaxWorkers)
	console.CountVar(defined, &f.memory, "memory", 0, 0)
	flags.AddMaxChunk(defined, &f.maxChunk)
	console.Var(defined, &f.resume, "resume", false)
	f.shards.Add(defined)
	console.Var(defined, &f.quiet, "quiet", false)
	return cmd
}

func (f *makeFlags) run(ctx context.Context, env console.Env, path string) error {
	if f.out == "" {
		return console.Usagef("-o OUT is missing")
	}
	var output build.Options
	if err := f.form.into(&output, f.out); err != nil {
		return err
	}
	if output.PartBytes > 0 && output.Form.Older() {
		return console.Usagef("--part-size is for ZIPs: --form is %s", f.form.form)
	}
	if f.resume && f.shards.Given() {
		return console.Usagef("--resume is for a run without --shard and --merge: shards that are done are kept anyway")
	}
	if f.resume && (source.IsRemote(f.out) || source.LocalPath(f.out) != f.out) {
		return console.Usagef("--resume needs a local OUT, beside which a run leaves what is done")
	}
	made, text, err := f.recipe(ctx, env, path)
	if err != nil {
		return err
	}
	for _, name := range []string{f.stats, f.page} {
		if err := console.Writable(name); err != nil {
			// The files are tried here, so that an error comes before the chips are made.
			return err
		}
	}
	bar := console.NewBar(env.Err, "chips", -1)
	options := recipe.Options{Base: pathname.Dir(path),
		Output: recipe.Output{Form: output.Form, PartBytes: output.PartBytes},
		Loader: loader.Options{Workers: f.workers, MemoryBytes: f.memory, MaxChunkBytes: f.maxChunk, Opener: env.Files}}
	if !f.quiet {
		options.Progress = bar.Set
	}
	if f.shards.Given() && !f.shards.Merging() {
		defer bar.Done()
		_, err := f.divided(ctx, made, text, options)
		return err
	}
	var res *recipe.Result
	err = stored(ctx, f.out, output, func(path string, store build.Store) (err error) {
		options.Output.Store = store
		if f.shards.Merging() || f.resume {
			res, err = f.divided(ctx, made, text, options)
		} else {
			res, err = recipe.Make(ctx, made, path, options)
		}
		return err
	})
	bar.Done()
	if err != nil {
		return console.FileError(f.out, err)
	}
	if err := f.measure(ctx, env, made, options.Loader); err != nil {
		return err
	}
	for _, line := range res.Remarks() {
		fmt.Fprintf(env.Err, "chaski: %s\n", line)
	}
	_, err = fmt.Fprintf(env.Out, "%s: %d samples, %d files, %s\n", console.Printable(f.out), res.Samples, res.Files,
		console.DecimalSize(res.Bytes))
	if err != nil {
		return err
	}
	return f.draw(ctx, env, made, res, options.Loader)
}

// fieldsOf returns the rasters of a container's samples, as a run reads them.
func fieldsOf(r *recipe.Recipe) (fields []loader.Field) {
	for i := range r.Fields {
		field := loader.Field{Name: r.Fields[i].Name}
		if len(r.Fields) > 1 {
			field.Column = field.Name
		}
		fields = append(fields, field)
	}
	return fields
}

// measure writes the file of --stats: the statistics of the container, as 'chaski stats' computes them.
func (f *makeFlags) measure(ctx context.Context, env console.Env, r *recipe.Recipe, o loader.Options) error {
	if f.stats == "" {
		return nil
	}
	bar := console.NewBar(env.Err, "reading", -1)
	defer bar.Done()
	report, err := survey.Stats(ctx, loader.Spec{Source: f.out, Fields: fieldsOf(r), BatchSize: 1}.WithDefaults(), o,
		bar.Set)
	if err != nil {
		return err
	}
	return console.WriteJSON(f.stats, env.Out, report)
}

// divided makes a share of the chips, a container of all parts, or with --resume both.
func (f *makeFlags) divided(ctx context.Context, r *recipe.Recipe, text []byte, o recipe.Options) (res *recipe.Result,
	err error) {
	var before, all int64 // windows before the share's, and of all shares
	if set := o.Progress; f.resume && set != nil {
		o.Progress = func(done, _ int64) { set(before+done, all) }
	}
	maker, err := recipe.Open(ctx, r, o)
	if err != nil {
		return nil, err
	}
	defer maker.Close()
	extent := maker.Extent()
	all = extent.Windows
	write := func(s shards.Share, body io.Writer) (any, error) {
		before = s.First
		return nil, maker.WritePart(ctx, body, s.First, s.Count)
	}
	join := func(parts iter.Seq2[*shards.Part, error]) (err error) {
		before = 0
		res, err = maker.Merge(ctx, f.out, shards.As(parts, func(p *shards.Part) (*recipe.Part, error) {
			return &recipe.Part{First: p.First, Count: p.Count, Body: p.Body}, nil
		}))
		return err
	}
	work := shards.Work{Output: f.out, Settings: []string{string(text), extent.Version}, Inputs: extent.Source,
		Items: extent.Windows}
	if !f.resume {
		return res, f.shards.Do(ctx, work, write, join)
	}
	if err := maker.Writable(ctx, f.out); err != nil {
		return nil, err
	}
	return res, work.Resume(ctx, max(1, maker.Parts()), write, join)
}

// draw writes the page of --report about the container.
func (f *makeFlags) draw(ctx context.Context, env console.Env, r *recipe.Recipe, res *recipe.Result,
	o loader.Options) error {
	if f.page == "" {
		return nil
	}
	options := report.Options{Source: f.out, Title: r.Title(), Generator: "chaski " + env.Version,
		Fields: fieldsOf(r), Loader: o}
	if r.Split != nil {
		options.Fields = append(options.Fields, loader.Field{Name: "split", Kind: "text"})
	}
	for _, line := range res.Remarks() {
		options.Remarks = append(options.Remarks, report.Warning{Text: line})
	}
	page, err := report.Make(ctx, options)
	if err != nil {
		return console.FileError(f.page, err)
	}
	return console.WriteFile(f.page, env.Out, page.WriteHTML)
}

// recipe returns the recipe of a file, or of standard input if path is "-", and its text.
func (f *makeFlags) recipe(ctx context.Context, env console.Env, path string) (*recipe.Recipe, []byte, error) {
	var text []byte
	var err error
	if path == "-" {
		path = "standard input"
		// One byte more than the limit, so that Parse refuses longer recipes.
		text, err = io.ReadAll(io.LimitReader(env.In, recipe.MaxBytes+1))
		err = console.FileError(path, err)
	} else {
		text, err = open.Whole(ctx, env.Files, path)
		err = fault.WithFile(err, path)
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := recipe.Parse(text)
	if err != nil {
		return nil, nil, fault.WithFile(fault.New(fault.Unsupported, "recipe", fault.NoOffset, "%s",
			strings.TrimPrefix(err.Error(), "recipe: ")), path)
	}
	return r, text, nil
}
