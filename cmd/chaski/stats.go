package main

import (
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
}

func newStats(s streams) *cobra.Command {
	var f statsFlags
	cmd := &cobra.Command{
		Use:   "stats [flags] DATASET",
		Short: "Count means, deviations and percentiles of a dataset",
		Long: `Read every raster of a dataset (a catalog, table, folder, glob or file) once, and print what
normalisation needs as JSON: for every field and band the count, mean, standard deviation, least and
greatest value, percentiles and histogram of the samples that are not nodata. Python's chaski.load
and 'chaski bench' take the file with --stats.`,
		Example: `  chaski stats -o stats.json chips/
  chaski stats --field image=images/{id}.tif --field mask=masks/{id}.tif -o stats.json pairs/`,
		Args: exactlyOne("DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), s, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.fields, "field", nil, "`NAME=WHERE`: a field, WHERE being a column of the table or a pattern with {id}; repeatable (default: one raster \"image\")")
	fl.StringVarP(&f.out, "output", "o", "-", `output file, "-" for standard output`)
	fl.IntVar(&f.workers, "workers", 0, "decoding workers (default: the number of processors)")
	fl.StringVar(&f.bad, "bad-samples", loader.BadError, "what happens to samples that cannot be read: error or skip")
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
	bar := newProgress(s.err, "reading", -1)
	r, err := loader.Stats(ctx, spec, loader.Options{Workers: f.workers}, bar.set)
	bar.done()
	if err != nil {
		return usage(err)
	}
	return writeFile(f.out, s.out, func(w io.Writer) error { return printJSON(w, r) })
}
