package raster

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/shards"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/ops/convert"
)

type convertFlags struct {
	encoding
	out       string
	overwrite bool
	skipBad   bool
	workers   int
	shards    shards.Flags

	dims, extents, attr string // of arrays
	at                  flags.Timestamp

	steps string // of rumi3
	stack bool
}

const convertHelp = `Write rasters as TOG or rumi files, or as one TileDB array, and arrays as rasters.

SRC is a raster of any format that chaski reads, a directory, which is searched for .tif, .tiff and .rumi
files, or a TileDB array. A SRC may be remote (s3://, gs://, az://, https://); a remote directory ends
in a slash.

DST is a file if there is one SRC and that is a file. It is a directory if there are several files to
write, if it exists as a directory, or if it ends in a slash; the command makes it if necessary. A file in
it has the name of its source, or its path below a SRC that is a directory, with the extension .tif, or
.rumi for rumi2 and rumi3.

An array as SRC becomes one file for each image along n that was written, named by its coordinate. With
several attributes each has a directory of its name. --dims says what the dimensions of the array are
(default: their names), and --attr selects an attribute (default: all). With --to tiledb all SRC become
one dense array in the directory DST: n counts them in the order of the arguments, and in a directory in
the order of their paths. All must have the same shape and dtype.

Formats (default: rumi2 if DST ends in .rumi, otherwise tog):

  tog      as GDAL's COG driver writes with INTERLEAVE=TILE and COMPRESS=ZSTD: tiles whose sides are
           multiples of 16 pixels, predictors, no overviews
  rumi     rumi of generation 1, a BigTIFF of OpenZL frames
  rumi2    rumi of generation 2 (.rumi), which rumi-eo 0.16 reads and 0.18 does not; with --unit cell one
           frame holds a tile of all bands
  rumi3    rumi of generation 3 (.rumi), which rumi-eo 0.26 reads
  tiledb   a TileDB array of format version 3 with byteshuffle and zstd, encrypted if there is a key (see
           'chaski array')

Pixels are kept bit for bit. What else is kept depends on the format:

  tog      georeferencing, ground control points, RPCs, nodata value, internal mask, names, scales,
           offsets and units of bands, GDAL metadata, colour table and colours, TIFF's tags of text,
           resolution and colour profile; overviews with --overviews
  rumi     all of these but mask, overviews and which band is which colour
  rumi2    a transform together with an EPSG code; a raster that is georeferenced otherwise is refused
  rumi3    the same, names of bands, and times
  tiledb   nothing

When all is converted, a warning on standard error names what the new files lack; rasters that lack the
same share a line. --strict refuses such rasters instead. Files beside a raster (.msk, .ovr, .aux.xml)
are ignored. The first SRC that cannot be converted ends the command; --skip-bad leaves such files out,
and lists them on standard error. A raster from an array has the array's fill value as nodata value,
unless the whole image was written.

A file of rumi3 has the time of each step, and bands with names. --time gives the times if SRC has none:
2024-05-06, 2024-05-06T07:08:09Z or an interval, 2024-05-06/2024-05-09; once for each step. --names
gives names in place of those of SRC; bands without one become "band 0" and so on. --stack makes one file
of all SRC, which become its steps of time. --unit says what a frame holds: tile (one band of one step;
all steps of a band follow each other), step (the same, all bands of a step follow each other), cell
(all), or its axes, such as "h w b" or "b t h w". --dtype stores samples as another type of at most 16
bits, such as uint1, float8_e4m3fn or bfloat16; values that it does not have are refused. rumi-eo 0.26
reads no types of 2, 4 and 6 bits.

--t picks steps of time of a SRC of rumi3: "start:stop", "i,j,k" or "all". The other formats hold one
step. If --t picks several, DST is a directory, and each step becomes a file, named NAME-t0.tif and so on.

--graph names the OpenZL graph of rumi files by its steps: [delta> or planar>] [zigzag>] [transpose>]
and then store, zstd, entropy, bitpack, constant, pfor or pivco. planar is not for rumi, pfor only for
rumi3. pivco, for rumi3 as well, needs readers with geozl 0.19, which rumi-eo 0.26 does not have:
--geozl 19 says that yours have it.

--codec auto (the default) tries several graphs on a part of each tile and takes the one with the smallest
result. --codec best does the same among graphs that decode fast: in at most --max-cost times (default: 0.71)
what a tile of a TOG takes, by a table of measured costs, which has other figures for pivco on processors
without AVX-512 VBMI2.

A file appears under its name when it is complete; until then it has a temporary name in the same
directory. The command refuses to replace existing files unless --overwrite is set. It holds one decoded
image in memory for each file that it converts at the same time. The first fault ends the command; files
that were complete stay.`

func NewConvert(env console.Env) *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{
		Use:   "convert [flags] SRC... -o DST",
		Short: "Write rasters as TOG or rumi files, or as an array",
		Long:  convertHelp,
		Example: `  chaski convert chip.tif -o chip.rumi
  chaski convert --to tog --tile 256 --level 19 chip.tif -o chip-tog.tif
  chaski convert --to rumi --graph "delta>zstd" --workers 8 chips/ -o chips-rumi/
  chaski convert --to rumi2 --unit cell first.tif second.tif -o rumi2/
  chaski convert --to rumi3 --time 2024-05-06 --unit "h w b" chip.tif -o dated.rumi
  chaski convert --to rumi3 --stack --time 2024-05-06 --time 2024-05-16 may.tif june.tif -o cube.rumi
  chaski convert --to tog --t all cube.rumi -o steps/
  chaski convert --to rumi3 --codec best --time 2024-05-06 --unit cell --tile 256 chips/ -o chips-rumi3/
  chaski convert --to tiledb --dims "n b y x" --extent "y=256 x=256" chips/ -o chips-cube
  chaski convert --to rumi chips-cube -o chips-again/
  chaski convert --strict --overviews scene.tif -o scene-tog.tif`,
		Args: console.AtLeastOne("SRC"),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if err := f.shards.Check(cmd.Flags(), f.out); err != nil {
				return err
			}
			return f.run(cmd.Context(), env, paths)
		},
	}
	f.add(cmd)
	return cmd
}

// add declares the flags of cmd.
func (f *convertFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "`DST`, a file or a directory; - for standard output")
	f.encoding.add(fl)
	f.at.Add(fl)
	fl.StringVar(&f.dims, "dims", "", "what the dimensions of an array are, in their order: n, b, y and x")
	fl.StringVar(&f.extents, "extent", "",
		"`DIM=CELLS`...: sides of the tiles of an array (default: n=1 b=1, and --tile for y and x)")
	fl.StringVar(&f.attr, "attr", "", "attribute of an array (default: all of SRC; image for DST)")
	fl.StringVar(&f.steps, "t", "", "steps of time of SRC: `SEL`, or all")
	fl.BoolVar(&f.stack, "stack", false, "with --to rumi3: all SRC become one file, as its steps of time")
	console.CountVar(fl, &f.workers, "workers", 0, 0,
		"number of files or tiles to convert at the same time (default: the number of processors)")
	fl.BoolVar(&f.overwrite, "overwrite", false, "replace files that exist")
	fl.BoolVar(&f.skipBad, "skip-bad", false, "leave out files that cannot be converted")
	f.shards.Add(fl)
	flags.AddMaxChunk(fl, &f.o.MaxChunk)
}

func (f *convertFlags) run(ctx context.Context, env console.Env, paths []string) error {
	if err := f.resolve(); err != nil {
		return err
	}
	f.o.Opener = env.Files
	jobs, err := f.jobs(ctx, env.Files, paths)
	if err != nil {
		return err
	}
	if f.shards.Given() {
		return f.divided(ctx, env, jobs)
	}
	do := f.convertAll
	if f.to == convert.TileDB {
		do = f.array
	}
	results, err := do(ctx, env, jobs)
	if err != nil {
		return err
	}
	report(env.Err, jobs, results)
	return nil
}

// converted says what became of a conversion.
type converted struct {
	Left  []string `json:"left,omitempty"`  // properties of the source that the file does not have
	Error string   `json:"error,omitempty"` // why it was left out
}

// convertAll does conversions.
func (f *convertFlags) convertAll(ctx context.Context, env console.Env, jobs []conversion) ([]converted, error) {
	// Workers go to files first and to the tiles of a file last, because files need not wait for each
	// other's slowest tile.
	atOnce := min(f.workers, len(jobs))
	f.o.Workers = max(1, f.workers/max(atOnce, 1))
	bar := console.NewBar(env.Err, "converting", -1)
	defer bar.Done()
	if len(jobs) == 1 {
		f.o.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	}
	results := make([]converted, len(jobs))
	var done atomic.Int64
	err := each.Of(ctx, int64(len(jobs)), atOnce, func(ctx context.Context, i int64) error {
		if err := f.convert(ctx, env.Out, jobs[i], &results[i]); err != nil {
			return err
		}
		if len(jobs) > 1 {
			bar.Set(done.Add(1), int64(len(jobs)))
		}
		return nil
	})
	return results, err
}

// divided does a share of the conversions, or reports what those of all parts have left out.
func (f *convertFlags) divided(ctx context.Context, env console.Env, jobs []conversion) (err error) {
	work := shards.Work{Output: f.out, Settings: []any{f.o, f.o.MaxChunk, f.steps, f.skipBad}, Items: int64(len(jobs))}
	work.Inputs, err = shards.Hash(func(yield func([]any) bool) {
		for _, j := range jobs {
			if !yield([]any{[]byte(j.src), []byte(j.dst), j.step, j.image}) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if !f.shards.Merging() { // the part lies beside DST, which may be in a folder that is not there yet
		above := pathname.Dir(pathname.Trim(f.out))
		if err := durable.MkdirAll(above); err != nil {
			return console.FileError(above, err)
		}
	}
	work.Check = func(ctx context.Context, p *shards.Part) error { return stillThere(ctx, p, jobs) }
	return f.shards.Do(ctx, work, func(s shards.Share, _ io.Writer) (any, error) {
		return f.convertAll(ctx, env, jobs[s.First:s.First+s.Count])
	}, func(parts iter.Seq2[*shards.Part, error]) error {
		var all []converted
		for p, err := range parts {
			if err != nil {
				return err
			}
			results, err := convertedBy(p)
			if err != nil {
				return err
			}
			all = append(all, results...)
		}
		report(env.Err, jobs, all)
		return nil
	})
}

// convertedBy returns what became of the conversions of a shard.
func convertedBy(p *shards.Part) ([]converted, error) {
	results, err := shards.ParseTally[[]converted](p)
	if err == nil && int64(len(results)) != p.Count {
		err = fault.New(fault.Corrupt, "part", fault.NoOffset, "%d files, not %d", len(results), p.Count)
	}
	return results, err
}

// stillThere returns an error if a file that a shard wrote is not there: its part lies beside DST, so that who removes
// DST may leave it.
func stillThere(ctx context.Context, p *shards.Part, jobs []conversion) error {
	results, err := convertedBy(p)
	if err != nil {
		return err
	}
	const atOnce = 16 // a network file system answers several at the same time
	return each.Of(ctx, p.Count, atOnce, func(_ context.Context, i int64) error {
		dst := jobs[p.First+i].dst
		if results[i].Error != "" {
			return nil
		}
		_, err := os.Stat(dst)
		if errors.Is(err, fs.ErrNotExist) {
			return fault.New(fault.NotFound, "part", fault.NoOffset, "%s, which it tells of, is not there", dst)
		}
		return err
	})
}

// report says which files were left out, and the properties that the new files lack: rasters with the same losses share
// a line, because a directory mostly holds rasters of one kind. It runs after the last file, because a command that
// fails prints one line, its error.
func report(w io.Writer, jobs []conversion, results []converted) {
	skipped := 0
	var kinds []string // of losses, in the order of the first raster that has each
	rasters := map[string][]string{}
	for i, r := range results {
		if r.Error != "" {
			skipped++
			fmt.Fprintf(w, "chaski: skipped: %s\n", r.Error)
		}
		if len(r.Left) > 0 {
			kind := strings.Join(r.Left, ", ")
			if rasters[kind] == nil {
				kinds = append(kinds, kind)
			}
			rasters[kind] = append(rasters[kind], jobs[i].src)
		}
	}
	if skipped > 0 {
		fmt.Fprintf(w, "chaski: files skipped: %d\n", skipped)
	}
	for _, kind := range kinds {
		more := ""
		if n := len(rasters[kind]) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		fmt.Fprintf(w, "chaski: %s\n", console.Printable("warning: "+rasters[kind][0]+more+": left out: "+kind))
	}
}

// resolve fills in defaults and checks the flags.
func (f *convertFlags) resolve() error {
	if f.out == "" {
		return console.Usagef("-o DST is missing")
	}
	if f.to == "" && strings.EqualFold(filepath.Ext(f.out), ".rumi") {
		f.to = convert.Rumi2
	}
	if err := f.encoding.resolve(); err != nil {
		return err
	}
	if f.stack && f.to != convert.Rumi3 {
		return console.Usagef("--stack needs --to %s", convert.Rumi3)
	}
	if single := f.stack || f.to == convert.TileDB; single && (f.shards.Given() || f.skipBad) {
		return console.Usagef("--shard, --merge and --skip-bad are for several files: --stack and --to %s write one "+
			"thing", convert.TileDB)
	}
	if f.shards.Given() && !f.overwrite {
		return console.Usagef("--shard and --merge need --overwrite: a shard that is done again replaces its files")
	}
	if f.steps != "" && f.steps != allSteps {
		var err error
		if f.o.Steps, err = raster.ParseSelection(f.steps); err != nil {
			return console.Usagef("--t is %q: it must be start:stop, all, or a list of indices such as 0,2", f.steps)
		}
	}
	f.workers = cmp.Or(f.workers, procs.Workers())
	f.o.Workers = f.workers
	if err := f.o.Check(); err != nil {
		return console.WrongUsage(err)
	}
	return nil
}

// allSteps is the value of --t for all steps of time.
const allSteps = "all"

// convert does a conversion. The destination "-" is standard output.
func (f *convertFlags) convert(ctx context.Context, stdout io.Writer, j conversion, result *converted) error {
	if err := durable.MkdirAll(pathname.Dir(j.dst)); err != nil {
		return console.FileError(pathname.Dir(j.dst), err)
	}
	var bad error // a fault of the source
	err := console.WriteFile(j.dst, stdout, func(w io.Writer) (err error) {
		writer := bufio.NewWriterSize(w, 1<<20)
		result.Left, err = f.encode(ctx, writer, j)
		switch {
		// An error of the operating system is about the destination, because errors of a source have a kind:
		// it must not name the source.
		case console.SystemKind(err) != 0:
			return err
		case err != nil:
			bad = fault.WithFile(err, j.src)
			return bad
		}
		return writer.Flush()
	})
	if bad != nil && f.skipBad && fault.KindOf(bad) != 0 && ctx.Err() == nil {
		*result = converted{Error: fault.Line(bad)}
		return nil
	}
	return err
}

// encode writes the file of a conversion, and returns which properties of the source it does not have.
func (f *convertFlags) encode(ctx context.Context, w io.Writer, j conversion) ([]string, error) {
	options := f.o
	switch {
	case j.images != nil:
		return nil, convert.Image(ctx, w, j.images.Array().NewReader(), j.images, j.image, options)
	case f.stack:
		return convert.File(ctx, w, j.stack, options)
	case j.step >= 0:
		options.Steps = raster.Selection{List: []int{j.step}}
	}
	return convert.File(ctx, w, []string{j.src}, options)
}
