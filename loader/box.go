package loader

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
)

// maxBox bounds the numbers of a box in pixels. Each of them, times the largest ratio of two fields, 64, fits into 31
// bits, and so does the sum of two of these.
const maxBox = 1 << 23

// compileBoxes reads the boxes of all rows.
func (d *dataset) compileBoxes(ctx context.Context, _ *Engine, _ *shuffle.Sampler) (err error) {
	if d.sampler.Fit == spec.FitPad {
		if !d.pads() {
			return errors.New("spec: sampler: fit is \"pad\", and some field does not pad: set its pad")
		}
		if slices.ContainsFunc(d.rasters, func(r *pixels.Raster) bool { return r.Parts != nil }) {
			return errors.New("spec: sampler: fit is \"pad\", which is not for fields of several files: take " +
				"\"crop\" or \"resize\"")
		}
	}
	if d.boxes, err = rows.Bounds(ctx, d.table, d.sampler.BoxColumns()); err != nil {
		return fault.WithFile(err, d.source.Source)
	}
	for i := range d.boxes {
		for _, v := range d.boxes[i] {
			d.digest.Number(math.Float64bits(v))
		}
	}
	return nil
}

// pads reports whether all raster fields pad.
func (d *dataset) pads() bool {
	return !slices.ContainsFunc(d.rasters, func(r *pixels.Raster) bool { return !r.Pad })
}

// box returns the whole pixels of the box of a row, out to the next multiples of the alignment.
func (g *windowing) box(row int64) (box shuffle.Box, _ error) {
	b := &g.boxes[row]
	for _, v := range b {
		if !(math.Abs(v) <= maxBox) {
			return box, g.wrongBox(row, "they must be numbers of at most %d", maxBox)
		}
	}
	if min(b[2], b[3]) < 1 {
		return box, g.wrongBox(row, "width and height must be at least 1")
	}
	box.Y, box.H = outward(b[1], b[3], g.alignY)
	box.X, box.W = outward(b[0], b[2], g.alignX)
	return box, nil
}

// wrongBox returns an error about the box of a row.
func (g *windowing) wrongBox(row int64, format string, args ...any) error {
	return fault.New(fault.Corrupt, "box", "the columns %q of the row are %v: "+format,
		append([]any{g.sampler.BoxColumns(), g.boxes[row]}, args...)...)
}

// outward returns the least range of whole multiples of align that holds n pixels from position from on.
func outward(from, n float64, align int) (first, length int) {
	first = down(int(math.Floor(from)), align)
	return first, -down(-int(math.Ceil(from+n)), align) - first
}

// down returns the largest multiple of align that is at most v.
func down(v, align int) int { return v - ((v%align)+align)%align }

// boxWindow returns the window of a row in an asset of height by width pixels of the first raster field.
func (d *dataset) boxWindow(row int64, height, width int) (shuffle.Box, error) {
	win, err := d.box(row)
	if err != nil {
		return win, err
	}
	seen := pixels.Inside(win, height, width)
	switch {
	case seen.Y0 >= seen.Y1 || seen.X0 >= seen.X1: // the error below
	case d.resamples() && d.pads():
	case d.resamples():
		win = shuffle.Box{Y: seen.Y0, X: seen.X0, H: seen.Y1 - seen.Y0, W: seen.X1 - seen.X0}
	default:
		// The shift rounds down also what is negative.
		win.Y += down((win.H-d.sampler.Height)>>1, d.alignY)
		win.X += down((win.W-d.sampler.Width)>>1, d.alignX)
		win.H, win.W = d.sampler.Height, d.sampler.Width
		if !d.pads() {
			win.Y, win.X = max(min(win.Y, height-win.H), 0), max(min(win.X, width-win.W), 0)
		}
		seen = pixels.Inside(win, height, width)
	}
	if seen.Y0 >= seen.Y1 || seen.X0 >= seen.X1 {
		return win, d.wrongBox(row, "the window has none of the %d by %d pixels of the asset", height, width)
	}
	return win, nil
}

// inside returns the pixels that a draw shows of a window of a raster field, in an asset of height by width pixels:
// those in the asset and, if only the box is shown, in the box.
func (g *windowing) inside(draw *shuffle.Draw, r *pixels.Raster, win shuffle.Box, height, width int) chunk.Box {
	in := pixels.Inside(win, height, width)
	if g.sampler.Fit != spec.FitPad {
		return in
	}
	box, err := g.box(draw.Row)
	if err != nil {
		return chunk.Box{} // the window had the error before
	}
	box = r.Ratio.Scale(box)
	return chunk.Box{Y0: max(in.Y0, box.Y), Y1: min(in.Y1, box.Y+box.H), X0: max(in.X0, box.X),
		X1: min(in.X1, box.X+box.W)}
}
