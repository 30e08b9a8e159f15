package raster

import (
	"cmp"
	"fmt"
	"image/png"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/ops/verify"
	"github.com/chaski-eo/chaski/stats/shift"
)

// pairsHelp is the part of the help of verify about --pairs.
const pairsHelp = `--pairs checks a dataset whose samples have several rasters, such as an image and its mask. It compares
each raster of a sample with the first one:

  place   CRS and corners, from headers or the catalog, must be the same to half a pixel of the coarser
          raster. Rasters without a place are compared by their sizes.
  pixels  edges in both must lie on each other. Their shift is estimated by phase correlation of
          gradients, in a window of up to 512 by 512 pixels from the middle (where that does not tell,
          from the quarters), at the resolution of the coarser raster, and checked by the pixels that
          both have. Nodata is left out. It finds shifts of up to 100 pixels in windows of 256 by 256,
          most to within a pixel. The confidence is from 0 to 1. Shifts with less than 0.25 are not
          reported, but counted as unsure (few edges, or unlike ones), and so are those whose standard
          error reaches over --max-shift.

It prints the counts and the worst pairs. --pictures draws each of them: the first raster with the edges
of the other in magenta, and beside it these edges moved back by the shift, in green. The exit code is 1
if a pair is misplaced, shifted by more than --max-shift, or cannot be read.`

// pairsFlags are the flags of verify --pairs.
type pairsFlags struct {
	pairs    bool
	source   flags.Source
	options  survey.PairOptions
	pictures string
	json     bool

	own  pflag.FlagSet // flags that need --pairs
	data pflag.FlagSet // of these, those that a spec excludes
}

func (f *pairsFlags) add(fl *pflag.FlagSet) {
	fl.BoolVar(&f.pairs, "pairs", false, "check whether the rasters of each sample of a dataset lie on each other")
	f.source.Add(&f.data)
	f.own.Float64Var(&f.options.MaxShift, "max-shift", 1.5,
		"with --pairs: report estimated shifts of more than this many pixels")
	f.own.IntVar(&f.options.Worst, "worst", 20, "with --pairs: list at most this many pairs")
	f.own.StringVar(&f.pictures, "pictures", "", "with --pairs: write a PNG of each listed pair into this `DIR`")
	fl.BoolVar(&f.json, "json", false, "with --pairs: one line of JSON instead of text; without, it always is JSON")
	f.own.AddFlagSet(&f.data)
	fl.AddFlagSet(&f.own)
}

func (f *pairsFlags) run(cmd *cobra.Command, env console.Env, paths []string, o verify.Options) error {
	if len(paths) != 1 {
		return console.Usagef("there are %d paths: --pairs takes one dataset; put a glob in quotes", len(paths))
	}
	if cmd.Flags().Changed("max-faults") {
		return console.Usagef("--max-faults and --pairs exclude each other; see --worst")
	}
	if !(f.options.MaxShift > 0) {
		return console.Usagef("--max-shift is %v: it must be more than 0", f.options.MaxShift)
	}
	if err := console.FirstError(console.Between("workers", o.Workers, 0, flags.MaxWorkers),
		console.Between("worst", f.options.Worst, 1, 10_000)); err != nil {
		return err
	}
	spec, err := f.spec(paths[0])
	if err != nil {
		return err
	}
	opener := open.NewOpener(true)
	defer opener.Close()
	lo := loader.Options{Workers: o.Workers, MaxChunkBytes: o.MaxChunk, Opener: opener, SQL: env.SQL}
	if f.pictures != "" {
		if err := durable.MkdirAll(f.pictures); err != nil {
			return console.FileError(f.pictures, err)
		}
		f.options.Picture = f.draw
	}
	bar := console.NewBar(env.Err, "comparing", -1)
	f.options.Progress = bar.Set
	report, err := survey.Pairs(cmd.Context(), spec, lo, f.options)
	bar.Done()
	if err != nil {
		return console.UsageUnlessFault(err)
	}
	if f.json {
		err = console.PrintJSON(env.Out, report)
	} else {
		err = printPairs(env.Out, report, f.options.MaxShift)
	}
	if err == nil && len(report.Worst) > 0 {
		err = report.Worst[0].Err()
	}
	return err
}

// spec returns the spec of a dataset, or of the file that holds one.
func (f *pairsFlags) spec(path string) (loader.Spec, error) {
	if flags.IsSpec(path) {
		return flags.ReadSpec(path, &f.data)
	}
	return f.source.Spec(path)
}

// draw writes the picture of a pair.
func (f *pairsFlags) draw(p *survey.Pair, first, other *shift.Raster) error {
	pixels := p.ByPixels
	pixels = cmp.Or(pixels, p.ByPlace)
	var s *shift.Shift
	if pixels != nil {
		s = &shift.Shift{Y: pixels.Y, X: pixels.X}
	}
	img := draw.Pair(first, other, s)
	p.Picture = pathname.Join(f.pictures, fmt.Sprintf("%d-%s.png", p.Row, fileName(p.Other)))
	return console.WriteFile(p.Picture, nil, func(w io.Writer) error { return png.Encode(w, img) })
}

// fileName returns the name of a field with only such characters as any file system takes.
func fileName(field string) string {
	return strings.Map(func(r rune) rune {
		letter, digit := r|0x20 >= 'a' && r|0x20 <= 'z', r >= '0' && r <= '9'
		if letter || digit || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, field[:min(len(field), 100)])
}

// printPairs prints a report as text.
func printPairs(out io.Writer, r *survey.PairReport, most float64) error {
	count := func(n int64) string { return fmt.Sprint(n) }
	err := console.WriteTable(out, [][]string{
		{"samples", count(r.Samples)},
		{"pairs", count(r.Pairs)},
		{"misplaced: they lie at different places on the ground", count(r.Misplaced)},
		{fmt.Sprintf("shifted: pixels say by more than %g pixels", most), count(r.Shifted)},
		{"aligned: pixels say so", count(r.Aligned)},
		{"unsure: pixels do not tell", count(r.Unsure)},
		{"unreadable", count(r.Unreadable)},
	})
	if err != nil {
		return err
	}
	if r.Unplaced > 0 {
		fmt.Fprintf(out, "\n%d pairs have no place on the ground, and are compared by their sizes and pixels.\n",
			r.Unplaced)
	}
	for i := range r.Worst {
		printPair(out, &r.Worst[i])
	}
	if total := r.Misplaced + r.Shifted + r.Unreadable; int64(len(r.Worst)) < total {
		fmt.Fprintln(out, "\nMore pairs are not listed; see --worst.")
	}
	return nil
}

// printPair prints one pair.
func printPair(out io.Writer, p *survey.Pair) {
	fmt.Fprintf(out, "\nrow %d", p.Row)
	if p.ID != "" {
		fmt.Fprintf(out, " %s", console.OneLine(p.ID))
	}
	fmt.Fprintf(out, ": %s and %s: %s\n", console.OneLine(p.First), console.OneLine(p.Other), p.Verdict)
	fmt.Fprintf(out, "  %s\n", console.OneLine(p.Error))
	if p.ByPlace != nil {
		fmt.Fprintf(out, "  by place:  %v\n", p.ByPlace)
	}
	if p.ByPixels != nil {
		fmt.Fprintf(out, "  by pixels: %v (standard error %.1f, confidence %.2f)\n", p.ByPixels, p.ByPixels.Radius,
			p.ByPixels.Confidence)
	}
	if p.Picture != "" {
		fmt.Fprintf(out, "  picture:   %s\n", console.OneLine(p.Picture))
	}
}
