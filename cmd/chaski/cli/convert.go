package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb"
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
	at                  timestampFlag
}

func newConvert(s streams) *cobra.Command {
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
		Args: atLeastOne("SRC"),
		RunE: func(cmd *cobra.Command, paths []string) error { return f.run(cmd.Context(), s, paths) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "`DST`, a file or a folder; - for standard output")
	fl.StringVar(&f.to, "to", "", "format: tog, rumi, rumi2 or tiledb")
	f.at.add(fl)
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
	addMaxChunk(fl, &f.o.MaxChunk)
	return cmd
}

// conversion is one file to convert, or one image of an array.
type conversion struct {
	src, dst string
	images   *tiledb.Images // nil: a file
	image    int64
}

func (f *convertFlags) run(ctx context.Context, s streams, paths []string) error {
	if err := f.resolve(); err != nil {
		return err
	}
	files := newOpener(true)
	defer files.Close()
	f.o.Opener = files
	jobs, err := f.jobs(ctx, files, paths)
	if err != nil {
		return err
	}
	if f.to == convert.TileDB {
		if err := f.array(ctx, s, jobs); err != nil {
			return err
		}
		f.losses.print(s.err)
		return nil
	}
	// Files first: they need not wait for each other's slowest tile.
	atOnce := min(f.workers, len(jobs))
	f.o.Workers = max(1, f.workers/max(atOnce, 1))
	bar := newProgress(s.err, "converting", -1)
	defer bar.done()
	if len(jobs) == 1 {
		f.o.Progress = func(done, total int) { bar.set(int64(done), int64(total)) }
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
			if err := f.convert(gctx, s.out, i, j); err != nil {
				return err
			}
			if len(jobs) > 1 {
				mu.Lock()
				defer mu.Unlock()
				done++
				bar.set(int64(done), int64(len(jobs)))
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
	bar.done()
	f.losses.print(s.err)
	return nil
}

// losses are what conversions left out, for warnings once all of them succeeded: a command that fails
// prints its error alone. Rasters with the same losses are one, so that a folder of alike ones is one line.
type losses struct {
	mu sync.Mutex
	of map[string]*loss // by their names
}

type loss struct {
	first int // number of the first raster with it
	path  string
	count int
}

// add notes the losses of raster i. It may be called from several goroutines.
func (l *losses) add(i int, path string, names []string) {
	if len(names) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]*loss{}
	}
	key := strings.Join(names, ", ")
	v := l.of[key]
	if v == nil {
		v = &loss{first: i, path: path}
		l.of[key] = v
	}
	if v.count++; i < v.first {
		v.first, v.path = i, path
	}
}

// print prints a line a kind of loss, in the order of the first raster that has it.
func (l *losses) print(w io.Writer) {
	keys := slices.SortedFunc(maps.Keys(l.of), func(a, b string) int { return cmp.Compare(l.of[a].first, l.of[b].first) })
	for _, k := range keys {
		v := l.of[k]
		more := ""
		if v.count > 1 {
			more = fmt.Sprintf(" and %d more", v.count-1)
		}
		fmt.Fprintf(w, "chaski: warning: %s%s: left out: %s\n", clean(v.path), more, k)
	}
}

// resolve fills in defaults and checks the flags.
func (f *convertFlags) resolve() error {
	if f.out == "" {
		return usagef("no -o DST is named")
	}
	if f.to == "" {
		f.to = convert.TOG
		if strings.EqualFold(filepath.Ext(f.out), ".rumi") {
			f.to = convert.Rumi2
		}
	}
	if err := oneOf("to", f.to, convert.TOG, convert.Rumi, convert.Rumi2, convert.TileDB); err != nil {
		return err
	}
	if err := oneOf("unit", f.unit, "tile", "cell"); err != nil {
		return err
	}
	if f.workers < 0 {
		return usagef("--workers is at least 0")
	}
	if f.workers == 0 {
		f.workers = procs.Workers()
	}
	f.o.Format, f.o.Cells, f.o.Workers = f.to, f.unit == "cell", f.workers
	if err := f.o.Check(); err != nil {
		return wrongUsage(err)
	}
	return nil
}

// jobs pairs each raster with the file that it becomes.
func (f *convertFlags) jobs(ctx context.Context, files source.Opener, paths []string) ([]conversion, error) {
	st, err := os.Stat(f.out)
	folder := err == nil && st.IsDir() || strings.HasSuffix(f.out, "/") || strings.HasSuffix(f.out, string(filepath.Separator)) || len(paths) > 1
	var jobs []conversion
	for _, p := range paths {
		p = source.LocalPath(p)
		if tiledb.Is(ctx, files, p) {
			if jobs, err = f.images(ctx, files, jobs, p); err != nil {
				return nil, err
			}
			continue
		}
		if f.at.t != nil {
			return nil, usagef("--timestamp is for arrays; %s is none", p)
		}
		dir := false
		if !source.IsRemote(p) {
			st, err := os.Stat(p)
			if err != nil {
				return nil, fileError(p, err)
			}
			dir = st.IsDir()
		}
		switch {
		case f.to == convert.TileDB && !dir:
			jobs = append(jobs, conversion{src: p})
		case !dir && !folder:
			jobs = append(jobs, conversion{src: p, dst: f.out})
		case !dir:
			jobs = append(jobs, conversion{src: p, dst: f.inFolder(baseName(p))})
		default:
			if jobs, err = f.walk(ctx, jobs, p); err != nil {
				return nil, err
			}
		}
	}
	if len(jobs) == 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "folder", fault.NoOffset, "no raster below it"), paths[0])
	}
	if f.to == convert.TileDB {
		return jobs, nil
	}
	if len(jobs) == 1 && jobs[0].images != nil && !folder {
		jobs[0].dst = f.out
	}
	return jobs, f.apart(jobs)
}

// baseName returns the name of a file, of a remote one without the query of its URL.
func baseName(p string) string {
	if source.IsRemote(p) {
		if u, err := url.Parse(p); err == nil {
			return path.Base(u.Path)
		}
	}
	return filepath.Base(p)
}

// apart checks that no two rasters become one file, and that none exists unless it may be replaced.
func (f *convertFlags) apart(jobs []conversion) error {
	from := map[string]string{}
	for _, j := range jobs {
		dst := filepath.Clean(j.dst)
		if src, twice := from[dst]; twice {
			return usagef("%s and %s would both become %s", src, j.src, j.dst)
		}
		from[dst] = j.src
		if f.overwrite {
			continue
		}
		if _, err := os.Lstat(j.dst); err == nil {
			return fault.WithFile(fault.New(fault.Unsupported, "file", fault.NoOffset, "exists; --overwrite replaces it"), j.dst)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fileError(j.dst, err)
		}
	}
	return nil
}

// inFolder returns the name in the destination's folder of a raster with a path relative to it.
func (f *convertFlags) inFolder(rel string) string {
	ext := ".tif"
	if f.to == convert.Rumi2 {
		ext = ".rumi"
	}
	return filepath.Join(f.out, strings.TrimSuffix(rel, filepath.Ext(rel))+ext)
}

// walk appends the rasters below dir, links followed. It leaves out hidden files and folders, and the destination.
func (f *convertFlags) walk(ctx context.Context, jobs []conversion, dir string) ([]conversion, error) {
	out, outErr := os.Stat(f.out) // which need not exist yet
	isOut := func(d fs.DirEntry) bool {
		st, err := d.Info()
		return err == nil && outErr == nil && os.SameFile(st, out)
	}
	err := source.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fileError(p, err)
		case ctx.Err() != nil:
			return ctx.Err()
		case d.IsDir() && p != dir && (strings.HasPrefix(d.Name(), ".") || isOut(d)):
			return fs.SkipDir
		case d.IsDir() || strings.HasPrefix(d.Name(), "."):
			return nil
		}
		switch strings.ToLower(filepath.Ext(p)) {
		case ".tif", ".tiff", ".rumi":
			rel, err := filepath.Rel(dir, p)
			if err != nil {
				return err
			}
			jobs = append(jobs, conversion{src: p, dst: f.inFolder(rel)})
		}
		return nil
	})
	return jobs, err
}

// convert converts file i. A destination "-" is standard output.
func (f *convertFlags) convert(ctx context.Context, stdout io.Writer, i int, j conversion) error {
	if err := os.MkdirAll(filepath.Dir(j.dst), 0o777); err != nil {
		return fileError(filepath.Dir(j.dst), err)
	}
	return writeFile(j.dst, stdout, func(w io.Writer) error {
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
			if systemKind(err) != 0 { // of the destination: those of a source have a kind
				return err
			}
			return fault.WithFile(err, j.src)
		}
		return b.Flush()
	})
}
