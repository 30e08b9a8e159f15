package dataset

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/shards"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/containers"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/stats"
)

type statsFlags struct {
	Measured
	out     string
	workers int

	maxChunk int

	metadata  bool
	component string
	format    string
	sampling  bool
	weights   survey.WeightOptions
	shards    shards.Flags
}

func NewStats(env console.Env) *cobra.Command {
	var f statsFlags
	cmd := console.Command("stats [flags] SPEC.json|DATASET", console.ExactlyOne("SPEC.json or DATASET"),
		func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"count", "classes", "cell"} {
				if !f.sampling && cmd.Flags().Changed(name) {
					return console.Usagef("--%s needs --sampling", name)
				}
			}
			ends := []*magic.Format{console.JSON}
			if f.sampling {
				ends = nil
			}
			if err := cmp.Or(console.EndsLike(f.out, ends...), f.shards.Check(cmd.Flags(), f.out)); err != nil {
				return err
			}
			if f.sampling {
				if err := console.NotToTerminal(f.out, env.Out, "a file of weights"); err != nil {
					return err
				}
			}
			if !cmd.Flags().Changed("format") && console.IsTerminal(env.Out) {
				f.format = "text"
			}
			if f.metadata {
				if flags.IsSpec(cmd.Context(), env.Files, args[0]) {
					return console.Usagef("--from-metadata needs a container: %s is a spec", args[0])
				}
				for _, name := range []string{"split", "sampling", "dims", "timestamp", "workers",
					"max-chunk", "bad-samples", "shard", "merge"} {
					if cmd.Flags().Changed(name) {
						return console.Usagef("--%s is about pixels, which --from-metadata does not read", name)
					}
				}
				return f.pooled(cmd.Context(), env, args[0])
			}
			if f.component != "*" {
				return console.Usagef("--component is %q: it needs --from-metadata", f.component)
			}
			return f.run(cmd.Context(), env, args[0])
		})
	f.add(cmd)
	return cmd
}

// add declares the flags of cmd.
func (f *statsFlags) add(cmd *cobra.Command) {
	defined := cmd.Flags()
	console.Var(defined, &f.out, "output,o", "-")
	console.CountVar(defined, &f.workers, "workers", 0, 0)
	flags.AddMaxChunk(defined, &f.maxChunk)
	console.Var(defined, &f.metadata, "from-metadata", false)
	console.Var(defined, &f.component, "component", "*")
	// Without it pflag would print (default "*").
	defined.Lookup("component").DefValue = ""
	console.ChoiceVar(defined, &f.format, "format", "json", "text", "json")
	// Without this line pflag would print (default "json"), which is wrong on a terminal.
	defined.Lookup("format").DefValue = ""
	console.Var(defined, &f.sampling, "sampling", false)
	console.Var(defined, &f.weights.Field, "count", "")
	console.Var(defined, &f.weights.Classes, "classes", nil)
	// Without it pflag would print (default []), which contradicts the text.
	defined.Lookup("classes").DefValue = ""
	console.CountVar(defined, &f.weights.Cell, "cell", 64, 1)
	f.shards.Add(defined)
	f.Measured.Add(defined)
}

// pooled prints the statistics of --from-metadata.
func (f *statsFlags) pooled(ctx context.Context, env console.Env, name string) error {
	fields, err := flags.ParseFields(f.source.Fields)
	if err != nil {
		return err
	}
	if len(fields) > 0 && f.component != "*" {
		return console.Usagef("--field and --component exclude each other")
	}
	dataset, err := containers.Open(ctx, env.Files, name, f.base)
	if err != nil {
		return err
	}
	defer dataset.Close()
	keep, err := f.keep(ctx, dataset)
	if err != nil {
		return err
	}
	report, err := f.report(ctx, dataset, fields, keep)
	if err != nil {
		return err
	}
	out := pooledReport{Report: report, Samples: report.Samples}
	key := f.component
	if len(fields) == 1 {
		key = componentOf(fields[0])
	}
	// Components with different numbers of bands have no common statistics; the command still succeeds.
	if out.Pooled, err = dataset.Pool(ctx, key, keep); err != nil && fault.KindOf(err) != fault.Unsupported {
		return err
	}
	return f.write(ctx, env, out, report)
}

// write writes found as JSON into the output, or else as text the bands of the report.
func (f *statsFlags) write(ctx context.Context, env console.Env, found any, report *stats.Report) error {
	file := cmp.Or(f.out, "-")
	if f.format == "json" || file != "-" {
		if err := env.WriteJSON(ctx, file, found); err != nil || f.format == "json" {
			return err
		}
	}
	return console.Print(env.Out, summaryOf(report, strings.TrimPrefix(file, "-")), false)
}

// report returns the statistics of all components under their ids or, with --field, of some under the
// names of the fields.
func (f *statsFlags) report(ctx context.Context, d containers.Set, fields []loader.Field,
	keep func(row int) bool) (*stats.Report, error) {
	if len(fields) == 0 {
		return d.Report(ctx, f.component, keep)
	}
	out := &stats.Report{Version: stats.ReportVersion, Fields: map[string]stats.FieldReport{}}
	for _, field := range fields {
		sample := componentOf(field)
		written, err := d.Report(ctx, sample, keep)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", field.Name, err)
		}
		report, ok := written.Fields[sample]
		if !ok { // "*"
			return nil, console.Usagef("--field is \"%s=%s\": the container has no such component", field.Name, sample)
		}
		out.Samples += written.Samples
		out.Fields[field.Name] = report
	}
	return out, nil
}

// componentOf returns the path of a field below a sample, which is its name if the field has no path.
func componentOf(f loader.Field) string { return cmp.Or(f.Column, f.Pattern, f.Name) }

// pooledReport is what --from-metadata prints: the report of the components, and the statistics of all
// together.
type pooledReport struct {
	*stats.Report
	*stats.Pooled
	Samples int64 `json:"samples"`
}

// keep returns a function that reports whether the flags choose a sample of level 0. It returns nil if
// they choose all.
func (f *statsFlags) keep(ctx context.Context, d containers.Set) (func(row int) bool, error) {
	filter, err := f.source.Filter.TacoFilter()
	if err != nil || filter == nil && f.source.Filter.Where == "" {
		return nil, err
	}
	rows, err := f.source.Filter.Samples(ctx, d)
	if err != nil {
		return nil, err
	}
	chosen := make(map[int]bool, len(rows))
	for _, row := range rows {
		chosen[row] = true
	}
	return func(row int) bool { return chosen[row] }, nil
}

func (f *statsFlags) run(ctx context.Context, env console.Env, dataset string) error {
	measured, err := flags.SpecOr(ctx, env.Files, dataset, loader.ParseMeasured, &f.own, f.spec)
	if err != nil {
		return err
	}
	bar := console.NewBar(env.Err, "reading")
	defer bar.Done()
	options := loader.Options{Workers: f.workers, MaxChunkBytes: f.maxChunk, Opener: env.Files}
	switch {
	case f.shards.Given() && f.sampling:
		err = f.weightsOfShards(ctx, env, measured.WithDefaults(), options, bar.Set)
	case f.shards.Given():
		err = f.statsOfShards(ctx, env, measured.WithDefaults(), options, bar.Set)
	case f.sampling:
		var b bytes.Buffer
		if err = survey.Weights(ctx, &b, measured, options, f.weights, nil, bar.Set); err == nil {
			bar.Done()
			err = env.WriteFile(ctx, f.out, func(w io.Writer) error {
				_, err := b.WriteTo(w)
				return err
			})
		}
	default:
		var report *stats.Report
		if report, err = survey.Stats(ctx, measured, options, bar.Set); err == nil {
			bar.Done()
			err = f.write(ctx, env, report, report)
		}
	}
	return console.UsageUnlessFault(err)
}

// work returns the work of shards over the samples of a dataset, whose inputs the caller closes.
func (f *statsFlags) work(env console.Env, sp loader.Spec, in *survey.Inputs, settings any) (shards.Work, error) {
	if in.Rows < 1 {
		return shards.Work{}, fault.WithFile(fault.New(fault.NotFound, "dataset", "no samples"),
			sp.Source)
	}
	return shards.Work{Output: f.out, Settings: settings, Inputs: in.Fingerprint, Items: in.Rows, Env: env,
		Files: func(ctx context.Context, i int64) (files []shards.File, _ error) {
			assets, err := in.Assets(ctx, i)
			for _, asset := range assets {
				files = append(files, shards.File{Name: asset.URI, ETag: asset.ETag})
			}
			return files, err
		}}, nil
}

// statsOfShards measures a share of the samples, or writes the statistics of all parts.
func (f *statsFlags) statsOfShards(ctx context.Context, env console.Env, spec loader.Spec, o loader.Options,
	progress func(done, total int64)) (err error) {
	in, err := survey.OpenInputs(ctx, spec, o, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	work, err := f.work(env, spec, in, spec)
	if err != nil {
		return err
	}
	return f.shards.Do(ctx, work, func(s shards.Share, body io.Writer) (any, error) {
		share := &survey.Share{Of: in.Extent, First: s.First, Count: s.Count}
		part, err := survey.StatsPart(ctx, spec, o, share, progress)
		if err != nil {
			return nil, err
		}
		return nil, part.Write(body)
	}, func(parts iter.Seq2[*shards.Part, error]) error {
		var total *survey.Part
		read := func(p *shards.Part) (*survey.Part, error) { return survey.ReadPart(p.Body) }
		for part, err := range shards.As(parts, read) {
			switch {
			case err != nil:
				return err
			case total == nil:
				total = part
				continue
			}
			if err := total.Merge(part); err != nil {
				return err
			}
		}
		report := total.Report(spec.Fields)
		return f.write(ctx, env, report, report)
	})
}

// weightsOfShards counts the pixels of a share of the rows, or writes the weights of all parts.
func (f *statsFlags) weightsOfShards(ctx context.Context, env console.Env, spec loader.Spec, o loader.Options,
	progress func(done, total int64)) (err error) {
	in, err := survey.OpenInputs(ctx, spec, o, &f.weights)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	work, err := f.work(env, spec, in, []any{spec, f.weights})
	if err != nil {
		return err
	}
	return f.shards.Do(ctx, work, func(s shards.Share, body io.Writer) (any, error) {
		share := &survey.Share{Of: in.Extent, First: s.First, Count: s.Count}
		return nil, survey.Weights(ctx, body, spec, o, f.weights, share, progress)
	}, func(parts iter.Seq2[*shards.Part, error]) error {
		return env.WriteFile(ctx, f.out, func(w io.Writer) error {
			return survey.MergeWeights(w, shards.As(parts, func(p *shards.Part) (survey.WeightsPart, error) {
				return survey.WeightsPart{Rows: p.Count, File: p.Body}, nil
			}))
		})
	})
}

// Measured has the flags that say which samples are measured, and with which fields.
type Measured struct {
	source flags.Source
	bands  flags.Bands
	bad    string
	base   string

	own pflag.FlagSet // the flags that a spec excludes, because it says the same
}

func (m *Measured) Add(fl *pflag.FlagSet) {
	m.source.Add(&m.own)
	m.bands.Add(&m.own)
	console.ChoiceVar(&m.own, &m.bad, "bad-samples", spec.BadError, spec.BadError, spec.BadSkip)
	console.Var(&m.own, &m.base, "base-path", "")
	fl.AddFlagSet(&m.own)
}

// spec makes a spec of a dataset and the flags.
func (m *Measured) spec(dataset string) (loader.Spec, error) {
	measured, err := m.source.Spec(dataset)
	if err != nil {
		return measured, err
	}
	if measured.Fields, err = m.bands.First(measured.Fields); err != nil {
		return measured, err
	}
	measured.BatchSize, measured.BadSamples, measured.BasePath = 1, m.bad, m.base
	measured = measured.WithDefaults()
	if err := measured.Validate(); err != nil {
		return measured, console.WrongUsage(err)
	}
	return measured, nil
}
