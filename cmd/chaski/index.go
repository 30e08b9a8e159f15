package main

import (
	"context"
	"encoding/hex"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/catalog"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/source"
)

type indexFlags struct {
	format   string
	out      string
	workers  int
	absolute bool
	maxChunk int
}

func newIndex(s streams) *cobra.Command {
	var f indexFlags
	cmd := &cobra.Command{
		Use:   "index [flags] PATH...",
		Short: "Print the header blobs of files, or write a catalog of them",
		Long: `Index raster files: what is needed to read windows of a file without looking at its header
first.

Formats: hex prints one line a file, in the order named: the header blob of a rumi file, or the
chunk index blob of a TIFF, in hexadecimal ('chaski cat --header' takes either). parquet writes a
catalog with one row a file (path, blob, shape, dtype, nodata, EPSG, transform, bounds, size), which
is the fastest way to open a dataset; there PATH may be a folder, which is walked, or a glob. Paths
are stored relative to the catalog's folder unless --absolute is given.`,
		Example: `  chaski index chip.tif > chip.hex
  chaski index --format parquet -o train.parquet chips/
  chaski index --format parquet -o all.parquet first.tif second.tif`,
		Args: atLeastOne("PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return f.run(cmd.Context(), s, paths) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.format, "format", "hex", "hex or parquet")
	fl.StringVarP(&f.out, "output", "o", "-", `output file, "-" for standard output`)
	fl.IntVar(&f.workers, "workers", 0, "files read at the same time (default: the number of processors, at least 4)")
	fl.BoolVar(&f.absolute, "absolute", false, "store absolute paths in the catalog")
	fl.IntVar(&f.maxChunk, "max-chunk", loader.DefaultMaxChunkBytes, "largest decoded chunk, in bytes")
	return cmd
}

func (f *indexFlags) run(ctx context.Context, s streams, paths []string) error {
	if err := oneOf("format", f.format, "hex", "parquet"); err != nil {
		return err
	}
	if f.workers < 0 || f.maxChunk < 1 {
		return usagef("--workers is at least 0 and --max-chunk at least 1")
	}
	files := &source.Files{}
	defer files.Close()
	if f.format == "hex" {
		return writeFile(f.out, s.out, func(w io.Writer) error { return f.hex(ctx, w, files, paths) })
	}
	bar := newProgress(s.err, "indexing", -1)
	defer bar.done()
	o := catalog.WriteOptions{
		Base: filepath.Dir(f.out), Absolute: f.absolute, Workers: f.workers, MaxChunk: f.maxChunk, Opener: files,
		Progress: func(done, total int) { bar.set(int64(done), int64(total)) },
	}
	return writeFile(f.out, s.out, func(w io.Writer) error {
		_, err := catalog.WriteParquet(ctx, w, paths, o)
		return err
	})
}

func (f *indexFlags) hex(ctx context.Context, w io.Writer, files *source.Files, paths []string) error {
	for _, p := range paths {
		_, m, err := catalog.OpenAsset(ctx, files, p, f.maxChunk)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, hex.EncodeToString(m.Blob)+"\n"); err != nil {
			return err
		}
	}
	return nil
}
