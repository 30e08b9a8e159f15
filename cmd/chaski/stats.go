package main

import (
	"bytes"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/loader"
)

type statsFlags struct {
	fields  []string
	out     string
	workers int
	bad     string

	sampling bool
	weights  loader.WeightOptions
}

func newStats(s streams) *cobra.Command {
	var f statsFlags
	cmd := &cobra.Command{
		Use:   "stats [flags] DATASET",
		Short: "Count means, deviations and percentiles of a dataset",
		Long: `Read every raster of a dataset (a catalog, table, folder, glob or file) once, and print what
normalisation needs as JSON: for every field and band the count, mean, standard deviation, least and
greatest value, percentiles and histogram of the samples that are not nodata. Python's chaski.load
and 'chaski bench' take the file with --stats.

With --sampling it writes another file instead: how many valid pixels, or pixels of some classes of a
field, every cell of every asset has. Python's chaski.WeightedWindow takes it, to draw windows where
there is something to see.`,
		Example: `  chaski stats -o stats.json chips/
  chaski stats --field image=images/{id}.tif --field mask=masks/{id}.tif -o stats.json pairs/
  chaski stats --sampling --field image=images/{id}.tif --field mask=masks/{id}.tif --count mask --classes 3 -o fields.weights pairs/`,
		Args: exactlyOne("DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), s, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.fields, "field", nil, "`NAME=WHERE`: a field, WHERE being a column of the table or a pattern with {id}; repeatable (default: one raster \"image\")")
	fl.StringVarP(&f.out, "output", "o", "-", `output file, "-" for standard output`)
	fl.IntVar(&f.workers, "workers", 0, "decoding workers (default: the number of processors)")
	fl.StringVar(&f.bad, "bad-samples", loader.BadError, "what happens to samples that cannot be read: error or skip")
	fl.BoolVar(&f.sampling, "sampling", false, "write weights for the sampler weighted_window")
	fl.StringVar(&f.weights.Field, "count", "", "with --sampling, the `FIELD` whose pixels are counted (default: the last)")
	fl.Float64SliceVar(&f.weights.Classes, "classes", nil, "with --sampling, the values of its first band that count (default: all that are valid)")
	fl.IntVar(&f.weights.Cell, "cell", 64, "with --sampling, the side of a cell in pixels of the first field")
	return cmd
}

func (f *statsFlags) run(ctx context.Context, s streams, dataset string) error {
	if f.workers < 0 {
		return usagef("--workers is at least 0")
	}
	fields, err := parseFields(f.fields)
	if err != nil {
		return err
	}
	spec := loader.Spec{Source: dataset, Fields: fields, BatchSize: 1, BadSamples: f.bad}.WithDefaults()
	if err := spec.Validate(); err != nil {
		return usageError{err}
	}
	if f.sampling {
		return f.writeWeights(ctx, s, spec)
	}
	bar := newProgress(s.err, "reading", -1)
	r, err := loader.Stats(ctx, spec, loader.Options{Workers: f.workers}, bar.set)
	bar.done()
	if err != nil {
		return usage(err)
	}
	return writeFile(f.out, s.out, func(w io.Writer) error { return printJSON(w, r) })
}

// writeWeights writes the file that the sampler weighted_window takes.
func (f *statsFlags) writeWeights(ctx context.Context, s streams, spec loader.Spec) error {
	bar := newProgress(s.err, "reading", -1)
	var b bytes.Buffer
	err := loader.Weights(ctx, &b, spec, loader.Options{Workers: f.workers}, f.weights, bar.set)
	bar.done()
	if err != nil {
		return usage(err)
	}
	return writeFile(f.out, s.out, func(w io.Writer) error {
		_, err := b.WriteTo(w)
		return err
	})
}
