package dataset

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/store/taco"
)

type statsFlags struct {
	source  flags.Source
	out     string
	workers int
	bad     string

	maxChunk int

	metadata  bool
	component string
	format    string
	base      string
	sampling  bool
	weights   loader.WeightOptions

	own pflag.FlagSet // the flags that say what a spec says
}

func NewStats(env console.Env) *cobra.Command {
	var f statsFlags
	cmd := &cobra.Command{
		Use:   "stats [flags] SPEC.json|DATASET",
		Short: "Count means, deviations and percentiles of a dataset",
		Long: `Read every raster of a dataset (a catalog, table, container, folder, glob, file or array) once, and print what
normalisation needs as JSON: for every field and band the count, mean, standard deviation, least and
greatest value, percentiles and histogram of the samples that are not nodata. Python's chaski.load
and 'chaski bench' take the file with --stats. --where, --bbox, --datetime and --split choose rows of a
table or catalog, and samples of level 0 of a container as for 'chaski ls'; of a container a --field is a
path of ids below a sample, or a column. SPEC.json, as Python's loader.spec, says all that itself: fields,
conditions, and which part of which split; samples that cannot be read are left out unless its policy
is "error".

With --from-metadata the dataset is a container whose rows hold statistics (stats:mean, ...): those of
the deepest level are pooled band by band, each row by its number of pixels. Percentiles come from
the container's histograms, where it has them. Besides "mean", "std", "min" and "max" of all
components together, the JSON has "fields", one a component, as without --from-metadata; --field
NAME=PATH takes the component at the end of a path, under the name that a run has for it.

With --sampling it writes another file instead: how many valid pixels, or pixels of some classes of a
field, every cell of every asset has. Python's chaski.WeightedWindow takes it, to draw windows where
there is something to see. It counts all rows of a table or catalog, whatever conditions say, and those
samples of a container that they leave: there, give those of the run.`,
		Example: `  chaski stats -o stats.json chips/
  chaski stats --field image=images/{id}.tif --field mask=masks/{id}.tif -o stats.json pairs/
  chaski stats -o stats.json spec.json
  chaski stats --from-metadata --field image=t0/t0-img -o pooled.json data.taco
  chaski stats --field image=s2/img.tif --where "cloud_cover < 10" --split train coast.tacozip
  chaski stats --sampling --field image=images/{id}.tif --field mask=masks/{id}.tif --count mask --classes 3 -o fields.weights pairs/`,
		Args: console.ExactlyOne("SPEC.json or DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := console.OneOf("format", f.format, "json"); err != nil {
				return err
			}
			for _, name := range []string{"count", "classes", "cell"} {
				if !f.sampling && cmd.Flags().Changed(name) {
					return console.Usagef("--%s goes with --sampling", name)
				}
			}
			if f.metadata {
				if flags.IsSpec(args[0]) {
					return console.Usagef("--from-metadata is for a container, and %s is a spec", args[0])
				}
				for _, name := range []string{"split", "sampling", "dims", "timestamp", "workers", "max-chunk", "bad-samples"} {
					if cmd.Flags().Changed(name) {
						return console.Usagef("--%s reads pixels: it does not go with --from-metadata", name)
					}
				}
				return f.pooled(cmd.Context(), env, args[0])
			}
			if f.component != "*" {
				return console.Usagef("--component goes with --from-metadata")
			}
			return f.run(cmd.Context(), env, args[0])
		},
	}
	own, fl := &f.own, cmd.Flags()
	f.source.Add(own)
	fl.StringVarP(&f.out, "output", "o", "-", `output file, "-" for standard output`)
	fl.IntVar(&f.workers, "workers", 0, "decoding workers (default: the number of processors)")
	flags.AddMaxChunk(fl, &f.maxChunk)
	own.StringVar(&f.bad, "bad-samples", loader.BadError, "what happens to samples that cannot be read: error or skip")
	fl.BoolVar(&f.metadata, "from-metadata", false, "pool the statistics that a container's rows hold, and read no pixel")
	fl.StringVar(&f.component, "component", "*", "with --from-metadata: `ID` of the samples of the deepest level that count (default: all)")
	fl.StringVar(&f.format, "format", "json", "json")
	own.StringVar(&f.base, "base-path", "", "`FOLDER` of the source files of a catalog of containers")
	fl.BoolVar(&f.sampling, "sampling", false, "write weights for the sampler weighted_window")
	fl.StringVar(&f.weights.Field, "count", "", "with --sampling, the `FIELD` whose pixels are counted (default: the last)")
	fl.Float64SliceVar(&f.weights.Classes, "classes", nil, "with --sampling, the values of its first band that count (default: all that are valid)")
	fl.Lookup("classes").DefValue = "" // "[]" in the help says less than the text before it
	fl.IntVar(&f.weights.Cell, "cell", 64, "with --sampling, the side of a cell in pixels of the first field")
	fl.AddFlagSet(own)
	return cmd
}

// pooled prints the pooled statistics of a container's metadata.
func (f *statsFlags) pooled(ctx context.Context, env console.Env, name string) error {
	fields, err := flags.ParseFields(f.source.Fields)
	if err != nil {
		return err
	}
	if len(fields) > 0 && f.component != "*" {
		return console.Usagef("--field and --component exclude each other")
	}
	files := open.NewOpener(true)
	defer files.Close()
	d, err := taco.Open(ctx, files, []string{name}, taco.Options{BasePath: f.base})
	if err != nil {
		return err
	}
	defer d.Close()
	keep, err := f.keep(ctx, d)
	if err != nil {
		return err
	}
	r, err := f.report(ctx, d, fields, keep)
	if err != nil {
		return err
	}
	out := pooledReport{Report: r, Samples: r.Samples}
	all := f.component
	if len(fields) == 1 {
		all = componentOf(fields[0])
	}
	// Components of other numbers of bands have no statistics in common.
	if out.Pooled, err = d.Pool(ctx, all, keep); err != nil && fault.KindOf(err) != fault.Unsupported {
		return err
	}
	return console.WriteFile(f.out, env.Out, func(w io.Writer) error { return console.PrintJSON(w, out) })
}

// report returns the statistics of components by their ids, or of fields by the names that a run has for them.
func (f *statsFlags) report(ctx context.Context, d *taco.Dataset, fields []loader.Field, keep func(row int) bool) (*stats.Report, error) {
	if len(fields) == 0 {
		return d.Report(ctx, f.component, keep)
	}
	out := &stats.Report{Version: stats.ReportVersion, Fields: map[string]stats.FieldReport{}}
	for _, x := range fields {
		id := componentOf(x)
		r, err := d.Report(ctx, id, keep)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", x.Name, err)
		}
		of, ok := r.Fields[id]
		if !ok { // "*"
			return nil, console.Usagef("--field %s=%s names no component", x.Name, id)
		}
		out.Samples += r.Samples
		out.Fields[x.Name] = of
	}
	return out, nil
}

// componentOf returns the path of a field below a sample, or of a field that has none its name.
func componentOf(f loader.Field) string { return cmp.Or(f.Column, f.Pattern, f.Name) }

// pooledReport is what --from-metadata prints: a report, and the numbers of all components together.
type pooledReport struct {
	*stats.Report
	*taco.Pooled
	Samples int64 `json:"samples"`
}

// keep returns which samples of level 0 the flags choose; nil: all.
func (f *statsFlags) keep(ctx context.Context, d *taco.Dataset) (func(row int) bool, error) {
	only, err := f.source.Filter.TacoFilter()
	if err != nil || only == nil && f.source.Filter.Where == "" {
		return nil, err
	}
	var rows []int
	if only != nil {
		rows, err = d.Filter(ctx, *only)
	} else {
		rows, err = d.Visible(ctx, 0)
	}
	if err != nil {
		return nil, err
	}
	t, err := d.Level(ctx, 0)
	if err == nil {
		rows, err = flags.ChooseRows(ctx, t, rows, f.source.Filter.Where, "")
	}
	if err != nil {
		return nil, fault.WithFile(err, d.Parts()[0])
	}
	chosen := make(map[int]bool, len(rows))
	for _, row := range rows {
		chosen[row] = true
	}
	return func(row int) bool { return chosen[row] }, nil
}

func (f *statsFlags) run(ctx context.Context, env console.Env, dataset string) error {
	if f.workers < 0 {
		return console.Usagef("--workers is at least 0")
	}
	spec, err := f.specOf(dataset)
	if err != nil {
		return err
	}
	if f.sampling {
		return f.writeWeights(ctx, env, spec)
	}
	bar := console.NewBar(env.Err, "reading", -1)
	opener := open.NewOpener(true)
	defer opener.Close()
	r, err := loader.Stats(ctx, spec, loader.Options{Workers: f.workers, MaxChunkBytes: f.maxChunk, Opener: opener, SQL: env.SQL}, bar.Set)
	bar.Done()
	if err != nil {
		return console.UsageUnlessFault(err)
	}
	return console.WriteFile(f.out, env.Out, func(w io.Writer) error { return console.PrintJSON(w, r) })
}

// specOf returns the spec in a file of JSON, or makes that of a dataset and the flags.
func (f *statsFlags) specOf(dataset string) (loader.Spec, error) {
	if flags.IsSpec(dataset) {
		s, err := flags.ReadSpec(dataset, &f.own)
		if s.BadSamples == loader.BadReplace || s.BadSamples == loader.BadFill {
			s.BadSamples = loader.BadSkip // what takes their place does not count
		}
		return s, err
	}
	s, err := f.source.Spec(dataset)
	if err != nil {
		return s, err
	}
	s.BatchSize, s.BadSamples, s.BasePath = 1, f.bad, f.base
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		return s, console.WrongUsage(err)
	}
	return s, nil
}

// writeWeights writes the file that the sampler weighted_window takes.
func (f *statsFlags) writeWeights(ctx context.Context, env console.Env, spec loader.Spec) error {
	bar := console.NewBar(env.Err, "reading", -1)
	var b bytes.Buffer
	err := loader.Weights(ctx, &b, spec, loader.Options{Workers: f.workers, MaxChunkBytes: f.maxChunk, SQL: env.SQL}, f.weights, bar.Set)
	bar.Done()
	if err != nil {
		return console.UsageUnlessFault(err)
	}
	return console.WriteFile(f.out, env.Out, func(w io.Writer) error {
		_, err := b.WriteTo(w)
		return err
	})
}
