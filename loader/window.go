package loader

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// window returns the window of a draw, in an asset of height by width pixels of the first raster
// field. An asset that is too small, or for whole chips too large, is unsupported; one whose size
// changed during the run is corrupt.
func (d *dataset) window(p *shuffle.Plan, draw *shuffle.Draw, height, width int, pad bool) (shuffle.Box, error) {
	sampler := &d.sampler
	window := shuffle.Box{H: sampler.Height, W: sampler.Width}
	if d.kind.Whole && draw.Corner == nil {
		return window, wholeChip(window, height, width, pad)
	}
	if !d.resamples() && (height < window.H || width < window.W) && !pad {
		return window, tooSmall(window, height, width)
	}
	if draw.Corner != nil {
		return d.windowAt(draw.Corner, window, height, width, pad)
	}
	switch {
	case d.boxes != nil:
		return d.boxWindow(draw.Row, height, width)
	case d.sizes.available():
		// The plan has counted the windows of the measured size, so another size would put windows
		// where no pixels are.
		if size := d.sizes.of(draw.Row); int(size.Height) != height || int(size.Width) != width {
			return window, fault.New(fault.Corrupt, "window", "the asset has %d by %d pixels, and had %d by %d when "+
				"the run was opened", height, width, size.Height, size.Width)
		}
	}
	var weights *shuffle.Weights
	if d.weights != nil {
		var err error
		if weights, err = d.weights.Of(draw.Row, height, width); err != nil {
			return window, err
		}
	}
	if share := d.sampler.MinOverlap; share > 0 {
		return d.overlapping(p, draw, share, height, width, pad)
	}
	b, _ := p.Window(draw, height, width, weights)
	return b, nil
}

// overlapping returns the window of a view that overlaps the first window of its sample.
func (d *dataset) overlapping(p *shuffle.Plan, draw *shuffle.Draw, share float64, height, width int,
	pad bool) (shuffle.Box, error) {
	lead := *draw
	lead.View = 0
	first, err := d.views.all[0].window(p, &lead, height, width, pad)
	if err != nil {
		return first, err
	}
	win, ok := p.Overlapping(draw, first, share, height, width)
	if !ok {
		return win, fault.New(fault.Unsupported, "window",
			"min_overlap is %v, and a window of %d by %d pixels can share only %.3g with the first, of %d by %d",
			share, win.H, win.W, shuffle.Overlap(win, first), first.H, first.W)
	}
	return win, nil
}

// wholeChip checks that an asset of height by width pixels is a chip of the run.
func wholeChip(chip shuffle.Box, height, width int, pad bool) error {
	switch {
	case (height < chip.H || width < chip.W) && !pad:
		return tooSmall(chip, height, width)
	case height > chip.H || width > chip.W:
		return fault.New(fault.Unsupported, "window",
			"the asset has %d by %d pixels, whole chips of this run %d by %d", height, width, chip.H, chip.W)
	}
	return nil
}

// tooSmall returns the error about an asset that is smaller than its window.
func tooSmall(window shuffle.Box, height, width int) error {
	return fault.New(fault.Unsupported, "window", "the asset has %d by %d pixels, the window %d by %d, and the field "+
		"does not pad", height, width, window.H, window.W)
}

// windowAt returns the window of a size at a corner that a ticket names, in an asset of height by width pixels.
func (g *windowing) windowAt(corner *[2]int, window shuffle.Box, height, width int, pad bool) (shuffle.Box, error) {
	window.Y, window.X = corner[0], corner[1]
	if window.Y%g.alignY != 0 || window.X%g.alignX != 0 {
		return window, fault.New(fault.Unsupported, "window", "its corner is at row %d and column %d: with fields of "+
			"other resolutions, they must be multiples of %d and %d", window.Y, window.X, g.alignY, g.alignX)
	}
	outside := window.Y > height-window.H || window.X > width-window.W
	if window.Y >= height || window.X >= width || outside && !pad {
		return window, fault.New(fault.NotFound, "window", "the asset has %d by %d pixels, and the window %d by %d at "+
			"row %d and column %d", height, width, window.H, window.W, window.Y, window.X)
	}
	return window, nil
}

// windowOf returns the window of a draw, in pixels of a raster field whose asset, of the table's
// row at, is a. All steps of a sequence share the window of the first one. Assets on different
// grids are unsupported.
func (e *Engine) windowOf(ctx context.Context, d *dataset, draw *shuffle.Draw, field int, at int64,
	a catalog.Asset) (shuffle.Box, error) {
	raster, lead := d.rasters[field], d.rasters[0]
	if err := raster.Accepts(&a); err != nil {
		return shuffle.Box{}, err
	}
	base := anchor{Asset: a, raster: raster, height: a.Index.Height, width: a.Index.Width}
	if field > 0 {
		var err error
		if d.files[0] != nil {
			base, err = e.begin(ctx, d, draw)
		} else {
			base, err = e.anchorOf(ctx, d, at)
		}
		if err != nil {
			return shuffle.Box{}, err
		}
		first := &chunk.Index{Height: base.height, Width: base.width}
		if !d.wholes(draw) && !raster.Ratio.Holds(first, a.Index) {
			return shuffle.Box{}, fault.New(fault.Unsupported, "asset",
				"%d by %d pixels do not share a grid with the first field's %d by %d; in the first sample they do",
				a.Index.Height, a.Index.Width, first.Height, first.Width)
		}
		if err := raster.SameGround(&base.Asset, &a); err != nil {
			return shuffle.Box{}, err
		}
	}
	// A window drawn in one size has no meaning in another, so every step needs the size of the
	// first.
	if at != draw.Row || field == 0 && d.files[0] != nil {
		begin, err := e.begin(ctx, d, draw)
		if err != nil {
			return shuffle.Box{}, err
		}
		if base.height != begin.height || base.width != begin.width {
			return shuffle.Box{}, fault.New(fault.Unsupported, "asset", "%d by %d pixels; the first step of the "+
				"sequence has %d by %d", base.height, base.width, begin.height, begin.width)
		}
		if err := lead.SameGround(&begin.Asset, &base.Asset); err != nil {
			return shuffle.Box{}, err
		}
	}
	w, err := d.window(e.plan, draw, base.height, base.width, raster.Pad)
	if w = d.scaled(draw, w, raster, a.Index); err == nil && raster.Ratio.Apart() && !d.wholes(draw) {
		err = wholeChip(w, a.Index.Height, a.Index.Width, raster.Pad)
	}
	return w, err
}

// wholes reports whether the window of a draw is the whole of each raster, resampled.
func (g *windowing) wholes(draw *shuffle.Draw) bool {
	return g.sampler.Whole && draw.Corner == nil
}

// scaled converts the window of a draw to pixels of an asset of a field.
func (g *windowing) scaled(draw *shuffle.Draw, w shuffle.Box, r *pixels.Raster, index *chunk.Index) shuffle.Box {
	if g.wholes(draw) {
		return shuffle.Box{H: index.Height, W: index.Width}
	}
	return r.Ratio.Scale(w)
}

// anchor is the raster that decides the window of a draw.
type anchor struct {
	catalog.Asset
	raster        *pixels.Raster
	height, width int // in pixels of the first raster field
}

// anchorOf returns the anchor of a row: the raster of the first field, or with the policy "fill" the raster of the
// first field that opens, because the others must not be lost with it.
func (e *Engine) anchorOf(ctx context.Context, d *dataset, row int64) (anchor, error) {
	var first error
	for i, raster := range d.rasters {
		asset, err := d.table.Fields[raster.TableColumn].Asset(ctx, row)
		if err == nil && i == 0 {
			return anchor{asset, raster, asset.Index.Height, asset.Index.Width}, nil
		}
		if err == nil {
			if d.sampler.Whole { // its window is the whole of it
				return anchor{asset, raster, asset.Index.Height, asset.Index.Width}, nil
			}
			if height, width, ok := raster.Ratio.First(asset.Index); ok {
				return anchor{asset, raster, height, width}, nil
			}
			continue
		}
		if i == 0 || fault.KindOf(err) == 0 {
			first = err
		}
		if !e.fills(err) || d.files.some() || d.kind.Ground {
			break
		}
	}
	return anchor{}, first
}

// fills reports whether an error leaves the other fields of its row.
func (e *Engine) fills(err error) bool {
	return e.spec.BadSamples == spec.BadFill && fault.KindOf(err) != 0
}

// begin returns the anchor that decides the window of a sequence: of the first step, or with the policy "fill" of the
// first step that opens. With sizes measured before the run (GridWindow, TileWindow) the first step must have one:
// otherwise the sequence has no window, and all its steps are bad.
func (e *Engine) begin(ctx context.Context, d *dataset, draw *shuffle.Draw) (anchor, error) {
	base, err := e.anchorOf(ctx, d, draw.Row)
	if d.sizes.available() && d.sizes.of(draw.Row).Height == 0 {
		return base, err
	}
	for step := 0; step < d.span() && err != nil && e.fills(err); step++ {
		row := e.rowOf(draw, step)
		switch {
		case step >= d.rasters[0].Steps || d.files.padding(0, step, row):
		case d.files.some():
			var asset catalog.Asset
			asset, err = d.table.Fields[d.column(0, step)].Asset(ctx, row)
			if err == nil {
				base = anchor{asset, d.rasters[0], asset.Index.Height, asset.Index.Width}
			}
		default:
			base, err = e.anchorOf(ctx, d, row)
		}
	}
	return base, err
}

// rowOf returns the row of the table for a step of a draw, on the ground the row of its first scene, or -1 for padding.
func (e *Engine) rowOf(draw *shuffle.Draw, step int) int64 {
	set := e.set(draw)
	switch {
	case set.steps == 0:
		return draw.Row
	case set.ground == nil:
		return e.plan.Row(draw, step)
	}
	if steps := set.ground.Steps(e.plan.Place(draw)); step < len(steps) {
		return steps[step].Rows[0]
	}
	return -1
}
