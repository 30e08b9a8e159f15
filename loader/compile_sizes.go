package loader

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
)

// compileSize computes the size of windows in every field. first is the asset of the first raster
// field, or nil without raster fields.
func (d *dataset) compileSize(first *chunk.Index) error {
	d.alignY, d.alignX = 1, 1
	if first == nil {
		if len(d.vectors) > 0 {
			return errors.New("spec: shapes lie in the windows of a raster, and there is none")
		}
		if !d.kind.NoRaster {
			return fmt.Errorf("spec: sampler: kind %q needs a raster", d.sampler.Kind)
		}
		return nil
	}
	d.chip = [2]int{first.Height, first.Width}
	sampler := &d.sampler
	if d.kind.Ground {
		sampler.Height, _ = sampler.Side()
		sampler.Width = sampler.Height
		for _, r := range d.rasters {
			r.SetSize(sampler.Height, sampler.Width)
		}
		return nil
	}
	if sampler.Height == 0 {
		sampler.Height, sampler.Width = first.Height, first.Width
	}
	for _, field := range d.rasters {
		// A coarser field has whole pixels only at some corners of the first one. The least common
		// multiple is the smallest step at which every field has a whole corner (docs/order.md).
		d.alignY, d.alignX = pixels.Lcm(d.alignY, field.Ratio.DenY), pixels.Lcm(d.alignX, field.Ratio.DenX)
	}
	if err := d.setSize(sampler.Height, sampler.Width); err != nil {
		return err
	}
	if d.kind.Tiles && sampler.TileHeight == 0 && sampler.TileWidth == 0 {
		sampler.TileHeight, sampler.TileWidth = rows.RoundUp(first.ChunkH, d.alignY),
			rows.RoundUp(min(first.ChunkW, spec.MaxWindow), d.alignX)
	}
	return nil
}

// setSize sets the size of windows in every field.
func (d *dataset) setSize(height, width int) error {
	sampler := &d.sampler
	sampler.Height, sampler.Width = height, width
	if sampler.Height%d.alignY != 0 || sampler.Width%d.alignX != 0 {
		return fmt.Errorf(
			"spec: sampler: a window of %d by %d pixels has no whole size in every field: "+
				"it must be a multiple of %d by %d",
			sampler.Height, sampler.Width, d.alignY, d.alignX)
	}
	for _, r := range d.rasters {
		if sampler.Whole { // of a field apart, a view of another size has its own
			r.Ratio = r.Ratio.Resized(sampler.Height, sampler.Width)
		}
		w := r.Ratio.Scale(shuffle.Box{H: sampler.Height, W: sampler.Width})
		r.SetSize(w.H, w.W)
	}
	return nil
}

// ofSize returns the dataset for square windows of another side, as a source of a group.
func (d *dataset) ofSize(side int, g *group) (*dataset, error) {
	out := *d
	out.group, out.rasters = g, slices.Clone(d.rasters)
	for i, r := range d.rasters {
		out.rasters[i] = r.Sized(r.H, r.W)
	}
	return &out, out.setSize(side, side)
}

// compileViews makes the datasets of the further windows of a sample, and returns their samplers for package shuffle.
func (d *dataset) compileViews() (planned []shuffle.Sampler, _ error) {
	if len(d.sampler.Views) == 0 {
		return nil, nil
	}
	if len(d.rasters) == 0 {
		return nil, fmt.Errorf("spec: several windows of a sample need a raster")
	}
	d.views = &views{all: []*dataset{d}}
	for i := range d.sampler.Views {
		view, err := d.ofView(d.sampler.Views[i])
		if err != nil {
			return nil, spec.InWindow(i+1, err)
		}
		d.views.all = append(d.views.all, view)
		plan := view.sampler.Plan(d.alignY, d.alignX)
		if d.kind.Ground {
			plan.Kind = &shuffle.Beside{Side: d.sideOf(view), Overlap: view.sampler.MinOverlap}
		}
		planned = append(planned, plan)
	}
	counts := map[*dataset]int{}
	for _, view := range d.views.all {
		size := shuffle.Box{H: view.sampler.Height, W: view.sampler.Width}
		same := func(o *dataset) bool { return o.sampler.Height == size.H && o.sampler.Width == size.W }
		if view.tensor = slices.IndexFunc(d.views.sizes, same); view.tensor < 0 {
			view.tensor = len(d.views.sizes)
			d.views.sizes = append(d.views.sizes, view)
		}
		lead := d.views.sizes[view.tensor]
		view.place = counts[lead]
		counts[lead]++
	}
	for _, view := range d.views.all {
		view.views = d.views
		for _, raster := range view.rasters {
			if err := raster.SetViews(counts[d.views.sizes[view.tensor]]); err != nil {
				return nil, rows.InField(raster.Name, err)
			}
		}
	}
	return planned, nil
}

// ofView returns the dataset for a further window of each sample.
func (d *dataset) ofView(sampler Sampler) (*dataset, error) {
	out := *d
	out.sampler, out.kind = sampler, sampler.Traits()
	out.boxes, out.weights, out.rasters = nil, nil, slices.Clone(d.rasters)
	for i, r := range d.rasters {
		out.rasters[i] = r.Sized(r.H, r.W)
	}
	switch first := &d.sampler; {
	case out.kind.Ground:
		out.sampler.GeoWindows = first.GeoWindows
		out.sampler.SizeM, out.sampler.Resolution = sampler.SizeM, sampler.Resolution
		side, _ := out.sampler.Side()
		out.sampler.Height, out.sampler.Width = side, side
		for _, r := range out.rasters {
			r.SetSize(side, side)
		}
		return &out, nil
	case out.kind.Tiles:
		out.sampler.TileWindows = first.TileWindows
		out.sampler.Pool = max(first.Pool, 1) // the first window's pools count
	case sampler.Height == 0:
		sampler.Height, sampler.Width = d.chip[0], d.chip[1]
	}
	return &out, out.setSize(sampler.Height, sampler.Width)
}

// sideOf returns the side of a view on the ground in pixels of the first window, which d has.
func (g *windowing) sideOf(view *dataset) int {
	return int(math.Round(view.sampler.SizeM / g.sampler.Resolution))
}

// maxTileBytes bounds the computed bytes of tiles. 1 PiB is more than the memory of a machine, and
// 8,192 such numbers add up to 2^63, so no sum over the fields or sources overflows.
const maxTileBytes = 1 << 50

// tileBytes returns the decoded bytes of a tile in all fields.
func (d *dataset) tileBytes() int64 {
	tile := shuffle.Box{H: d.sampler.TileHeight, W: d.sampler.TileWidth}
	return d.decodedBytes(func(r *pixels.Raster) shuffle.Box { return r.Ratio.Scale(tile) })
}

// sampleBytes returns the decoded bytes of a sample in all fields.
func (d *dataset) sampleBytes() int64 {
	return d.decodedBytes(func(r *pixels.Raster) shuffle.Box { return shuffle.Box{H: r.H, W: r.W} })
}

// decodedBytes returns the decoded bytes of a box of each raster field, from 1 to maxTileBytes.
func (d *dataset) decodedBytes(boxOf func(*pixels.Raster) shuffle.Box) int64 {
	total := int64(0)
	for _, r := range d.rasters {
		box := boxOf(r)
		total += upTo(maxTileBytes, box.H, box.W, r.Stored, r.Native.Size())
	}
	return min(max(total, 1), maxTileBytes)
}

// poolBytes returns the decoded bytes of the tiles of all pools that fill at the same time, one for
// each stratum. It is at most maxTileBytes.
func (d *dataset) poolBytes() int64 {
	down, across := 0, 0
	for _, view := range d.ofViews() {
		if visits, ok := view.sampler.Plan(d.alignY, d.alignX).Kind.(*shuffle.Visits); ok {
			high, wide := visits.Chunks()
			down, across = max(down, high), max(across, wide)
		}
	}
	return upTo(maxTileBytes, down, across, d.sampler.Pool, d.leaves, int(d.tileBytes()))
}

// upTo returns the product of factors, each counted as at least 1, or bound if that is less.
func upTo(bound int64, factors ...int) int64 {
	if n := pixels.BoundedBytes(bound, factors...); n >= 0 {
		return n
	}
	return bound
}
