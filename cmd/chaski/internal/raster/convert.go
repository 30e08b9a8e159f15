package raster

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/ops/convert"
)

type convertFlags struct {
	out       string
	to        string
	unit      string
	overwrite bool
	workers   int
	o         convert.Options
	losses    losses

	dims, extents, attr string // of arrays
	at                  flags.Timestamp
}

func NewConvert(env console.Env) *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{
		Use:   "convert [flags] SRC... -o DST",
		Short: "Write rasters as TOG or rumi files",
		Long: `Write rasters as TOG or rumi files. SRC is any raster that is read, or a folder, in which
.tif, .tiff and .rumi files are looked for. DST is a file for one SRC that is a file; otherwise, or
if it exists as a folder or ends in a slash, it is a folder, which is made if need be. In it files
have the names of their sources (below a SRC that is a folder, their paths) with .tif, or .rumi for
rumi2. A SRC may be remote (s3://, gs://, az://, https://), but for folders of rasters.

A SRC that is a TileDB array becomes a file for each image along n that was written, named by its
coordinate; those of several attributes are in folders with their names. --dims says what its dimensions
are (default: their names) and --attr which attribute is meant (default: all). With --to tiledb all SRC
become one dense array, the folder DST: n counts them in the order named, below folders by path. They need
one shape and dtype.

Formats: tog is what GDAL's COG driver writes with INTERLEAVE=TILE and COMPRESS=ZSTD: tiles of a
multiple of 16 pixels, predictors, no overviews. rumi is generation 1 of rumi, a BigTIFF of OpenZL
frames. rumi2 is generation 2 (.rumi); with --unit cell a frame holds all bands of a tile's place.
tiledb is a TileDB array of format version 3 with byteshuffle and zstd, encrypted if a key is given as
for 'chaski array'.
Without --to it is rumi2 for a DST that ends in .rumi, else tog.

The samples are kept bit for bit. What else is kept depends on the format:

  tog      georeferencing, ground control points, RPCs, nodata value, internal mask, names, scales,
           offsets and units of bands, GDAL metadata, colour table and colours, TIFF's tags of text,
           resolution and colour profile; overviews with --overviews
  rumi     all of these but mask, overviews and which band is which colour
  rumi2    a transform together with an EPSG code; a raster that is placed in another way is refused
  tiledb   nothing

What a raster has and its new file has not is named in a warning on standard error once all is
converted; rasters with the same losses share a line. --strict refuses such a raster instead. Files
beside a raster (.msk, .ovr, .aux.xml) are not looked for. The nodata value of what comes from an
array is the array's fill value, but for images that were written as a whole.

Graphs of OpenZL, for rumi and rumi2, are named by what is done in turn:
[delta> or planar>] [zigzag>] [transpose>] store, zstd, entropy, bitpack or constant. planar is for
rumi2 only. auto takes, tile by tile, the one that makes a part of it smallest.

A file appears under its name once it is complete; until then it is a temporary one in the same
folder. Files that exist are refused unless --overwrite is given. An image is held in memory while
it is converted, as many images as files are converted at the same time. The first fault ends the
command; files that were complete stay.`,
		Example: `  chaski convert chip.tif -o chip.rumi
  chaski convert --to tog --tile 256 --level 19 chip.tif -o chip-tog.tif
  chaski convert --to rumi --graph "delta>zstd" --workers 8 chips/ -o chips-rumi/
  chaski convert --to rumi2 --unit cell first.tif second.tif -o rumi2/
  chaski convert --to tiledb --dims "n b y x" --extent "y=256 x=256" chips/ -o chips-cube
  chaski convert --to rumi chips-cube -o chips-again/
  chaski convert --strict --overviews scene.tif -o scene-tog.tif`,
		Args: console.AtLeastOne("SRC"),
		RunE: func(cmd *cobra.Command, paths []string) error { return f.run(cmd.Context(), env, paths) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "`DST`, a file or a folder; - for standard output")
	fl.StringVar(&f.to, "to", "", "format: tog, rumi, rumi2 or tiledb")
	f.at.Add(fl)
	fl.StringVar(&f.dims, "dims", "", "dimensions of an array, in their order, of n, b, y and x")
	fl.StringVar(&f.extents, "extent", "", "`DIM=CELLS`...: tiles of an array (default: n=1 b=1, and --tile)")
	fl.StringVar(&f.attr, "attr", "", "attribute of an array (default: all that SRC has; of DST image)")
	fl.IntVar(&f.o.Tile, "tile", 512, "edge of a tile, in pixels")
	fl.StringVar(&f.o.Graph, "graph", "auto", "OpenZL graph of rumi files")
	fl.IntVar(&f.o.Level, "level", 13, "zstd level, 1 to 22; from 6 on what shrinks to a third is searched deeper, from 20 on everything")
	fl.StringVar(&f.unit, "unit", "tile", "what a frame of rumi2 holds: tile (one band) or cell (all bands)")
	fl.IntVar(&f.workers, "workers", 0, "files and tiles converted at the same time (default: the number of processors)")
	fl.BoolVar(&f.o.Overviews, "overviews", false, "keep the overviews of a raster in its TOG, which then is none by its profile")
	fl.BoolVar(&f.o.Strict, "strict", false, "refuse a raster of which anything would be left out")
	fl.BoolVar(&f.overwrite, "overwrite", false, "replace files that exist")
	fl.Int64Var(&f.o.MaxBytes, "max-bytes", 8<<30, "largest image, decoded, in bytes")
	flags.AddMaxChunk(fl, &f.o.MaxChunk)
	return cmd
}

func (f *convertFlags) run(ctx context.Context, env console.Env, paths []string) error {
	if err := f.resolve(); err != nil {
		return err
	}
	files := open.NewOpener(true)
	defer files.Close()
	f.o.Opener = files
	jobs, err := f.jobs(ctx, files, paths)
	if err != nil {
		return err
	}
	if f.to == convert.TileDB {
		if err := f.array(ctx, env, jobs); err != nil {
			return err
		}
		f.losses.print(env.Err)
		return nil
	}
	// Files first: they need not wait for each other's slowest tile.
	atOnce := min(f.workers, len(jobs))
	f.o.Workers = max(1, f.workers/max(atOnce, 1))
	bar := console.NewBar(env.Err, "converting", -1)
	defer bar.Done()
	if len(jobs) == 1 {
		f.o.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(atOnce, 1))
	var mu sync.Mutex
	done := 0
	for i, j := range jobs {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := f.convert(gctx, env.Out, i, j); err != nil {
				return err
			}
			if len(jobs) > 1 {
				mu.Lock()
				defer mu.Unlock()
				done++
				bar.Set(int64(done), int64(len(jobs)))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	bar.Done()
	f.losses.print(env.Err)
	return nil
}

// resolve fills in defaults and checks the flags.
func (f *convertFlags) resolve() error {
	if f.out == "" {
		return console.Usagef("no -o DST is named")
	}
	if f.to == "" {
		f.to = convert.TOG
		if strings.EqualFold(filepath.Ext(f.out), ".rumi") {
			f.to = convert.Rumi2
		}
	}
	if err := console.OneOf("to", f.to, convert.TOG, convert.Rumi, convert.Rumi2, convert.TileDB); err != nil {
		return err
	}
	if err := console.OneOf("unit", f.unit, "tile", "cell"); err != nil {
		return err
	}
	if f.workers < 0 {
		return console.Usagef("--workers is at least 0")
	}
	if f.workers == 0 {
		f.workers = procs.Workers()
	}
	f.o.Format, f.o.Cells, f.o.Workers = f.to, f.unit == "cell", f.workers
	if err := f.o.Check(); err != nil {
		return console.WrongUsage(err)
	}
	return nil
}

// convert converts file i. A destination "-" is standard output.
func (f *convertFlags) convert(ctx context.Context, stdout io.Writer, i int, j conversion) error {
	if err := os.MkdirAll(filepath.Dir(j.dst), 0o777); err != nil {
		return console.FileError(filepath.Dir(j.dst), err)
	}
	return console.WriteFile(j.dst, stdout, func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<20)
		write := func() error {
			left, err := convert.File(ctx, b, j.src, f.o)
			if err == nil {
				f.losses.add(i, j.src, left)
			}
			return err
		}
		if j.images != nil {
			write = func() error { return convert.Image(ctx, b, j.images.Array().NewReader(), j.images, j.image, f.o) }
		}
		if err := write(); err != nil {
			if console.SystemKind(err) != 0 { // of the destination: those of a source have a kind
				return err
			}
			return fault.WithFile(err, j.src)
		}
		return b.Flush()
	})
}
