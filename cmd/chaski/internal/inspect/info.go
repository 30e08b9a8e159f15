// Package inspect has the command info, which describes files, containers and arrays from their
// headers.
package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

func NewInfo(env console.Env) *cobra.Command {
	var asJSON bool
	var stamp flags.Timestamp
	cmd := &cobra.Command{
		Use:   "info [--json] [--timestamp TIME] PATH...",
		Short: "Describe files, directories, containers and arrays",
		Long: `Describe what each PATH is, from its headers alone (CSV files are read as a whole):

  TIFF, TOG        shape, tiles, compression, predictor, nodata, mask, bands, georeferencing, and which of
                   the eight rules of the TOG profile hold; the sizes of overviews, also of those in PATH.ovr
  rumi             shape, frames, georeferencing, and the codecs of its first frames
  OpenZL frame     format version, outputs and codecs
  table            rows and columns of catalogs, other Parquet files and CSV files
  directory        number of files, by type
  container        levels with their rows and columns, classes, sensor and bands of TACO and Tortilla; a
                   path CONTAINER::PATH describes a sample in it
  array            schema and fragments of a TileDB array; with --timestamp, the fragments open at that time
  Zarr             shape, chunks, shards, codecs and georeferencing of an array, or of the arrays of a group

A PATH may be remote, a name of GDAL, such as /vsicurl/URL or /vsizip/ARCHIVE.zip/MEMBER, or a pattern of
raster files in quotes, such as "chips/*.tif".

The text is YAML with the members that --json has, which prints one line for each path.`,
		Example: `  chaski info chip.tif
  chaski info --json chip.tif chips/
  chaski info "chips/*.tif"`,
		Args: console.AtLeastOne("PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return info(cmd.Context(), env, paths, &stamp, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON for each path")
	stamp.Add(cmd.Flags())
	return cmd
}

func info(ctx context.Context, env console.Env, paths []string, at *flags.Timestamp, asJSON bool) error {
	shown := 0
	for _, pattern := range paths {
		matches, err := catalog.Glob(ctx, env.Files, pattern)
		if err != nil {
			return err
		}
		for _, p := range matches {
			if shown++; shown > 1 && !asJSON {
				fmt.Fprintln(env.Out, "---")
			}
			if err := infoOf(ctx, env, env.Files, p, at, asJSON); err != nil {
				return err
			}
		}
	}
	return nil
}

// infoOf describes one path.
func infoOf(ctx context.Context, env console.Env, files source.Opener, path string, at *flags.Timestamp,
	asJSON bool) error {
	info, err := survey.Describe(ctx, path, at.Value, loader.Options{Opener: files})
	switch {
	case errors.Is(err, survey.ErrNotArray):
		return console.Usagef("--timestamp opens arrays: %s is not an array", path)
	case err != nil:
		return err
	}
	return console.Print(env.Out, info, asJSON)
}
