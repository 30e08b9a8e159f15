package raster

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/ops/verify"
	"github.com/chaski-eo/chaski/store/tiledb"
)

func NewVerify(env console.Env) *cobra.Command {
	var o verify.Options
	cmd := &cobra.Command{
		Use:   "verify [flags] PATH...",
		Short: "Check files wholly",
		Long: `Check files wholly: structure, every tile, strip or frame decoded, every checksum verified.
Of a catalog every row's file is checked, and that the row's index is the file's. Of a TACO container
or Tortilla ids, tree, tables and the place of every sample are checked, pixels are not. Of a TileDB
array every tile of every fragment is decoded (the key of encrypted ones: see 'chaski array').
Folders are walked for .tif, .tiff, .rumi, .zl, .parquet, .tacozip, .taco and .tortilla files and
for arrays; links to files are followed, those to folders are not, as in datasets.

One line of JSON tells how many files, rows of catalogs, chunks and decoded bytes were checked, and
lists the fault of every file that has one. The exit code is 1 if there is any; stderr then has the
first.`,
		Example: `  chaski verify chip.tif
  chaski verify chips/ train.parquet`,
		Args: console.AtLeastOne("PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return runVerify(cmd.Context(), env, paths, o) },
	}
	fl := cmd.Flags()
	fl.IntVar(&o.Workers, "workers", 0, "files checked at the same time (default: the number of processors)")
	flags.AddMaxChunk(fl, &o.MaxChunk)
	fl.IntVar(&o.MaxFaults, "max-faults", 1000, "most faults listed")
	return cmd
}

func runVerify(ctx context.Context, env console.Env, paths []string, o verify.Options) error {
	if o.Workers < 0 || o.MaxFaults < 1 {
		return console.Usagef("--workers is at least 0, --max-faults at least 1")
	}
	var err error
	if o.Key, err = tiledb.KeyFromEnv(); err != nil {
		return err
	}
	bar := console.NewBar(env.Err, "verifying", -1)
	o.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	opener := open.NewOpener(true)
	defer opener.Close()
	o.Opener = opener
	r, err := verify.Paths(ctx, paths, o)
	bar.Done()
	if err != nil {
		return err
	}
	return console.FirstError(console.PrintJSON(env.Out, r), r.Err())
}
