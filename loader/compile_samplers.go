package loader

import (
	"context"
	"errors"
	"fmt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
)

// compilers check the sampler of a dataset, and finish what package shuffle needs, by the kinds that need it.
var compilers = map[string]func(d *dataset, ctx context.Context, e *Engine, to *shuffle.Sampler) error{
	spec.WeightedWindow: (*dataset).compileWeights,
	spec.GridWindow:     (*dataset).compileGrid,
	spec.TileWindow:     (*dataset).compileTiles,
	spec.RowWindow:      (*dataset).compileBoxes,
	spec.GeoWindow:      (*dataset).compileGround,
}

// compileSampler compiles the sampler for package shuffle.
func (d *dataset) compileSampler(ctx context.Context, e *Engine, to *shuffle.Sampler) error {
	*to = d.sampler.Plan(d.alignY, d.alignX)
	if compile := compilers[d.sampler.Kind]; compile != nil {
		return compile(d, ctx, e, to)
	}
	return nil
}

// compileGrid checks the steps of a grid, and measures the assets.
func (d *dataset) compileGrid(ctx context.Context, e *Engine, _ *shuffle.Sampler) error {
	sampler := &d.sampler
	if sampler.Pad && !d.pads() {
		return errors.New("spec: sampler: a grid that pads needs fields that do: set their pad")
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
	visits := to.Kind.(*shuffle.Visits)
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

// openCoverage opens the counts of valid pixels for Sampler.MaxNoData, and returns the selected rows that have windows.
// A grid keeps its rows: limitGrid leaves windows out.
func (d *dataset) openCoverage(ctx context.Context, e *Engine) ([]uint32, error) {
	if d.source.Time != nil {
		return nil, errors.New("spec: sampler: max_nodata is given, and sequences of rows have several images")
	}
	counts, err := rows.OpenCoverage(ctx, d.sampler.Coverage, e.options, d.table)
	if err != nil {
		return nil, err
	}
	_, _ = d.digest.Write(counts.Hash[:])
	if d.kind.DropsWindows {
		d.limited.by = counts
		return d.rows, nil
	}
	if d.kind.ByCoverage {
		d.weights = counts // the windows are drawn by it
	}
	planned := d.sampler.Plan(d.alignY, d.alignX)
	n := d.rows.Len(d.table.N)
	if d.rows, err = counts.Covered(ctx, &planned, n, d.rows.At); err != nil {
		return nil, fault.WithFile(err, d.sampler.Coverage)
	}
	d.limited = limited{total: n, valid: int64(len(d.rows))}
	return d.rows, nil
}

// limitGrid sets the windows of a grid that Sampler.MaxNoData leaves.
func (d *dataset) limitGrid(ctx context.Context, one *shuffle.Dataset) error {
	total, err := d.limited.by.LimitGrid(ctx, &one.Sampler, one.Len(), func(i int64) (int64, int, int) {
		row := one.Row(i)
		size := d.sizes.of(row)
		return row, int(size.Height), int(size.Width)
	})
	d.limited.total += total
	d.limited.valid += int64(len(one.Sampler.Windows))
	return fault.WithFile(err, d.sampler.Coverage)
}

// tellLimited logs how many windows, or rows, Sampler.MaxNoData leaves out. It is an error if none is left.
func (d *dataset) tellLimited(e *Engine) error {
	d.limited.by = nil // it is needed no more
	what, total, left := "samples", d.limited.total, d.limited.valid
	if d.kind.DropsWindows {
		what = "windows"
	}
	switch {
	case total == left:
		return nil
	case left == 0:
		return fault.WithFile(fault.New(fault.NotFound, "dataset",
			"all %d %s have more nodata than max_nodata, %v, allows", total, what, *d.sampler.MaxNoData),
			d.source.Source)
	}
	e.options.Logger.Warn(what+" with more nodata than max_nodata are left out", what, total-left, "left", left,
		"max_nodata", *d.sampler.MaxNoData, "dataset", d.source.Source)
	return nil
}

// compileWeights opens the weights of places.
func (d *dataset) compileWeights(ctx context.Context, e *Engine, _ *shuffle.Sampler) (err error) {
	if d.weights, err = rows.OpenWeights(ctx, d.sampler.Weights, e.options, d.table); err != nil {
		return err
	}
	_, _ = d.digest.Write(d.weights.Hash[:])
	return nil
}
