// Package raster has the commands about raster files: cat, frame, index, convert, paste and verify.
package raster

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/picture/npy"
	"github.com/chaski-eo/chaski/store/taco"
)

type catFlags struct {
	layout        string
	sizes         []string
	n, t, b, y, x string
	header        string
	overview      int
	format        string
	threads       int
	maxBytes      int64
	maxChunk      int
}

func NewCat(env console.Env) *cobra.Command {
	var f catFlags
	cmd := &cobra.Command{
		Use:   "cat [flags] PATH...",
		Short: "Decode pixels and print them, or their hash",
		Long: `Decode a window of a file, lay it out and write it to standard output. Several files of the same
shape and dtype are stacked along n, in the order of the arguments. A PATH may be a URI: http://, https://,
s3://, gs://, az://, abfs://, source:// or hf://datasets/OWNER/NAME@REVISION/PATH. It may be a name of
GDAL: /vsicurl/URL, /vsis3/BUCKET/KEY, /vsizip/ARCHIVE.zip/MEMBER, /vsisubfile/OFFSET_SIZE,FILE. The command
reads only the bytes that the window needs.

A selection SEL is "start:stop" (zero-based, stop not included) or, for n, t and b, a list "i,j,k"
in any order, which may repeat numbers. The default is the whole axis.

A layout is an einops pattern over the axes n (files), t (steps of time), b (bands), y (rows) and
x (columns), such as "b y x", "(y x) b" or "n (b y x)". A two-sided pattern,
"b (y p) (x q) -> (y x) (b p q)", splits axes; --size p=8 --size q=8 gives the lengths. An axis that the
pattern leaves out must have length 1.

A path may point into a container, data.tacozip::roi_1/image. In a streaming TACO it may name a chunk,
data.taco::roi_1/lrf::2: the part of the image that the chunk covers.

--b also takes names of bands, B04,B03,B02: those of the container's collection or, without one, the band
descriptions of the file. For a file without names that has all bands of a sensor,
--b "sentinel2msi[B04, B03, B02]" uses the names of that sensor.

Formats: sha256 prints one line of JSON with shape, dtype and the hash of the little-endian bytes
in C order. npy writes a NumPy file (version 1.0). raw writes the bytes alone.`,
		Example: `  chaski cat chip.tif
  chaski cat --b 3,2,1 --y 0:64 --x 0:64 --layout "y x b" --format npy chip.tif > rgb.npy
  chaski cat --layout "b (y p) (x q) -> (y x) b p q" --size p=16 --size q=16 --y 0:64 --x 0:64 chip.tif
  chaski cat --n 1,0 first.tif second.tif
  chaski cat data.tacozip::roi_qs1/image`,
		Args: console.AtLeastOne("PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return f.run(cmd.Context(), env, paths) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.layout, "layout", "",
		`einops pattern of the result (default "b y x", with "t" in front for files with steps of time, and then `+
			`with "n" for several paths)`)
	fl.StringArrayVar(&f.sizes, "size", nil,
		"`NAME=N`: length of an axis that the layout makes by splitting another; repeatable")
	fl.StringVar(&f.n, "n", "", "select paths by `SEL`")
	fl.StringVar(&f.t, "t", "", "select steps of time by `SEL`")
	fl.StringVar(&f.b, "b", "", "select bands by `SEL`, or by names")
	fl.StringVar(&f.y, "y", "", "select rows by `SEL`, start:stop in pixels")
	fl.StringVar(&f.x, "x", "", "select columns by `SEL`, start:stop in pixels")
	fl.StringVar(&f.header, "header", "",
		"`HEXFILE` with the header blob of the one PATH, as 'chaski index' prints it; the file's own header "+
			"is not read")
	console.CountVar(fl, &f.overview, "overview", -1, -1,
		"read overview `N`, from 0, the largest, as in GDAL, also of PATH.ovr; --y and --x count its pixels (-1: the "+
			"raster itself)")
	console.ChoiceVar(fl, &f.format, "format", "sha256", "sha256, npy or raw", "sha256", "npy", "raw")
	console.CountVar(fl, &f.threads, "threads", procs.Workers(), 1, "decoding threads")
	console.CountVar(fl, &f.maxBytes, "max-bytes", 8<<30, 1, "refuse results larger than this, in bytes")
	flags.AddMaxChunk(fl, &f.maxChunk)
	return cmd
}

func (f *catFlags) run(ctx context.Context, env console.Env, paths []string) error {
	bands, err := namedBands(ctx, env.Files, f.b, paths)
	if err != nil {
		return err
	}
	if bands != nil {
		f.b = ""
	}
	readOptions, err := f.options(paths)
	if err == nil && f.format != "sha256" {
		err = console.NotToTerminal(env.Out, f.format)
	}
	if err != nil {
		return err
	}
	if bands != nil {
		readOptions.B = raster.Selection{List: bands}
	}
	readOptions.Options.Opener, readOptions.Options.MaxChunkBytes = taco.InContainers(env.Files), f.maxChunk
	array, err := raster.Read(ctx, paths, readOptions)
	if err != nil {
		return console.UsageUnlessFault(fault.WithFile(err, paths[0]))
	}
	return writeArray(env.Out, array, f.format, paths[0])
}

// options checks the flags and returns them as options of loader.Read.
func (f *catFlags) options(paths []string) (o raster.ReadOptions, err error) {
	o.Layout, o.Threads, o.MaxBytes = f.layout, f.threads, f.maxBytes
	if f.layout != "" {
		if _, err := einops.Parse(f.layout); err != nil {
			return o, console.WrongUsage(err)
		}
	}
	if o.Sizes, err = parseSizes(f.sizes); err != nil {
		return o, err
	}
	for _, a := range []struct {
		axis, text string
		to         *raster.Selection
	}{{"n", f.n, &o.N}, {"t", f.t, &o.T}, {"b", f.b, &o.B}, {"y", f.y, &o.Y}, {"x", f.x, &o.X}} {
		*a.to, err = raster.ParseSelection(a.text)
		switch window := a.axis == "y" || a.axis == "x"; {
		case window && (err != nil || a.to.List != nil):
			// A list of rows or columns would not be a window, and could touch every chunk of a file.
			return o, console.Usagef("--%s is %q: it must be start:stop", a.axis, a.text)
		case err != nil:
			return o, console.Usagef("--%s is %q: it must be start:stop, or a list of indices such as 0,2", a.axis,
				a.text)
		}
	}
	if f.overview >= 0 {
		o.Overview = &f.overview
	}
	if f.header != "" {
		if o.Overview != nil {
			return o, console.Usagef("--header describes no overviews: leave it or --overview out")
		}
		if len(paths) != 1 {
			return o, console.Usagef("--header %s is the header of one PATH: there are %d", f.header, len(paths))
		}
		blob, err := readHex(f.header)
		if err != nil {
			return o, err
		}
		o.Headers = [][]byte{blob}
	}
	return o, nil
}

func parseSizes(list []string) (map[string]int, error) {
	sizes := map[string]int{}
	for _, s := range list {
		name, text, ok := strings.Cut(s, "=")
		n, err := strconv.Atoi(text)
		if !ok || name == "" || err != nil || n < 1 {
			return nil, console.Usagef("--size is %q: it must be NAME=N with N at least 1", s)
		}
		sizes[name] = n
	}
	return sizes, nil
}

// arraySum is what --format sha256 prints.
type arraySum struct {
	Shape  []int       `json:"shape"`
	DType  chunk.DType `json:"dtype"`
	SHA256 string      `json:"sha256"`
}

// writeArray writes an array in one of the formats. file names it in errors.
func writeArray(w io.Writer, a *raster.Array, format, file string) error {
	switch format {
	case "sha256":
		return console.PrintJSON(w, arraySum{a.Shape, a.DType, console.Sha256Hex(a.Data)})
	case "npy":
		head, err := npy.Header(a.DType, a.Shape)
		if err != nil {
			return fault.WithFile(err, file)
		}
		if _, err := w.Write(head); err != nil {
			return err
		}
	}
	_, err := w.Write(a.Data)
	return err
}
