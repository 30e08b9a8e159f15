package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/taco"
)

type statsFlags struct {
	fields  []string
	out     string
	workers int
	bad     string

	metadata  bool
	component string
	format    string
	base      string
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

With --from-metadata the dataset is a container whose rows hold statistics (stats:mean, ...): those of
the deepest level are pooled band by band, each row by its number of pixels.`,
		Example: `  chaski stats -o stats.json chips/
  chaski stats --field image=images/{id}.tif --field mask=masks/{id}.tif -o stats.json pairs/`,
		Args: exactlyOne("DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.metadata {
				return f.pooled(cmd.Context(), s, args[0])
			}
			if f.component != "*" {
				return usagef("--component goes with --from-metadata")
			}
			return f.run(cmd.Context(), s, args[0])
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.fields, "field", nil, "`NAME=WHERE`: a field, WHERE being a column of the table or a pattern with {id}; repeatable (default: one raster \"image\")")
	fl.StringVarP(&f.out, "output", "o", "-", `output file, "-" for standard output`)
	fl.IntVar(&f.workers, "workers", 0, "decoding workers (default: the number of processors)")
	fl.StringVar(&f.bad, "bad-samples", loader.BadError, "what happens to samples that cannot be read: error or skip")
	fl.BoolVar(&f.metadata, "from-metadata", false, "pool the statistics that a container's rows hold, and read no pixel")
	fl.StringVar(&f.component, "component", "*", "with --from-metadata: `ID` of the samples of the deepest level that count (default: all)")
	fl.StringVar(&f.format, "format", "json", "json")
	fl.StringVar(&f.base, "base-path", "", "`FOLDER` of the source files of a catalog of containers")
	return cmd
}

// pooled prints the pooled statistics of a container's metadata.
func (f *statsFlags) pooled(ctx context.Context, s streams, path string) error {
	if err := oneOf("format", f.format, "json"); err != nil {
		return err
	}
	files := newOpener(true)
	defer files.Close()
	d, err := taco.Open(ctx, files, []string{path}, taco.Options{BasePath: f.base})
	if err != nil {
		return err
	}
	defer d.Close()
	p, err := d.Pool(ctx, f.component, nil)
	if err != nil {
		return err
	}
	return writeFile(f.out, s.out, func(w io.Writer) error { return printJSON(w, p) })
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
	opener := newOpener(true)
	defer opener.Close()
	r, err := loader.Stats(ctx, spec, loader.Options{Workers: f.workers, Opener: opener}, bar.set)
	bar.done()
	if err != nil {
		return usage(err)
	}
	return writeFile(f.out, s.out, func(w io.Writer) error { return printJSON(w, r) })
}
