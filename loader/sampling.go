package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
)

// sampling is what opening and reading know of a kind of sampler, beside its members (package spec) and its order
// (package shuffle).
type sampling struct {
	// compile checks the sampler of a dataset, and finishes what package shuffle needs; nil if there is nothing to do.
	compile func(d *dataset, ctx context.Context, e *Engine, to *shuffle.Sampler) error
	// windows returns how many windows, or visits, an asset of a size has; nil if all assets have Sampler.PerAsset.
	windows func(s *shuffle.Sampler, height, width int) int64
	// noRaster says that samples need no raster.
	noRaster bool
	// corners says that tickets may name the corners of windows of one size.
	corners bool
	// resamples says that windows have another size in the tensor.
	resamples bool
	// shares says that windows of an asset may need the same chunk, and say which before they are read.
	shares bool
}

// samplings are the kinds of samplers, by their names.
var samplings = map[string]*sampling{
	spec.WholeChip:      {noRaster: true},
	spec.RandomWindow:   {noRaster: true, corners: true, shares: true},
	spec.ResizedWindow:  {resamples: true, shares: true},
	spec.WeightedWindow: {compile: (*dataset).compileWeights, shares: true},
	spec.GridWindow: {compile: (*dataset).compileGrid, shares: true,
		windows: func(s *shuffle.Sampler, height, width int) int64 { return s.Grid.Count(height, width) }},
	spec.TileWindow: {compile: (*dataset).compileTiles, corners: true,
		windows: func(s *shuffle.Sampler, height, width int) int64 { return s.Visits.Tiles(height, width) }},
	spec.GroundWindow: {compile: (*dataset).compileGround, resamples: true},
}

// kind returns what is known of the kind of the dataset's sampler.
func (d *dataset) kind() *sampling { return samplings[d.sampler.Kind] }

// byTile reports whether windows are drawn tile by tile, out of tiles that workers share.
func (d *dataset) byTile() bool { return d.sampler.Kind == spec.TileWindow }

// onGround reports whether windows lie at places on the ground.
func (d *dataset) onGround() bool { return d.sampler.Kind == spec.GroundWindow }

// drawsNoCorner reports whether tickets may not name the corners of windows.
func (d *dataset) drawsNoCorner() bool { return !d.kind().corners || len(d.sampler.Sizes) > 0 }

// sharesChunks reports whether windows of one batch may need the same chunk, and say which before they are read.
func (d *dataset) sharesChunks() bool { return d.kind().shares && d.sampler.PerAsset != 1 }

// compileSampler compiles the sampler for package shuffle.
func (d *dataset) compileSampler(ctx context.Context, e *Engine, to *shuffle.Sampler) error {
	*to = d.sampler.Plan(d.alignY, d.alignX)
	if compile := d.kind().compile; compile != nil {
		return compile(d, ctx, e, to)
	}
	return nil
}

// compileGrid checks the steps of a grid, and measures the assets.
func (d *dataset) compileGrid(ctx context.Context, e *Engine, _ *shuffle.Sampler) error {
	sampler := &d.sampler
	if sampler.Pad && slices.ContainsFunc(d.rasters, func(r *pixels.Raster) bool { return !r.Pad }) {
		return errors.New("spec: sampler: a grid that pads needs fields that do")
	}
	if sampler.StrideY%d.alignY != 0 || sampler.StrideX%d.alignX != 0 {
		return fmt.Errorf("spec: sampler: strides of %d by %d pixels must be multiples of %d by %d",
			sampler.StrideY, sampler.StrideX, d.alignY, d.alignX)
	}
	return d.measure(ctx, e)
}

// compileTiles checks the tiles, chooses how many of them a pool has, and measures the assets if all their tiles are
// visited.
func (d *dataset) compileTiles(ctx context.Context, e *Engine, to *shuffle.Sampler) error {
	visits := &to.Visits
	if visits.TileH < 1 || visits.TileW < 1 || visits.TileH%visits.AlignY != 0 || visits.TileW%visits.AlignX != 0 {
		return fmt.Errorf("spec: sampler: tiles of %d by %d pixels must be multiples of %d by %d", visits.TileH,
			visits.TileW, visits.AlignY, visits.AlignX)
	}
	if visits.Pool == 0 {
		visits.Pool = visits.PoolWithin(d.sampler.PoolBytes, d.tileBytes())
		d.sampler.Pool = visits.Pool
	}
	if d.sampler.PerAsset == 0 {
		return d.measure(ctx, e)
	}
	return nil
}

// compileWeights opens the weights of places.
func (d *dataset) compileWeights(ctx context.Context, e *Engine, _ *shuffle.Sampler) (err error) {
	if d.weights, err = rows.OpenWeights(ctx, d.sampler.Weights, e.options, d.table); err != nil {
		return err
	}
	d.hasDigest = true
	_, _ = d.digest.Write(d.weights.Hash[:])
	return nil
}
