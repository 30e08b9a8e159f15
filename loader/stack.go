package loader

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/crs/warp"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// eachPart calls do for every part of a stack that a field takes bands of, with how it lies in the stack.
func eachPart(f *pixels.Raster, a *catalog.Asset,
	do func(k int, part *pixels.Raster, l *pixels.Lay) error) error {
	for k, part := range f.Parts {
		if part == nil {
			continue
		}
		if err := part.Fits(&a.Parts[k]); err != nil {
			return a.Parts[k].Fault(err)
		}
		lay, err := part.NewLay(a, k)
		if err != nil {
			return err
		}
		if err := do(k, part, &lay); err != nil {
			return err
		}
	}
	return nil
}

// stack decodes window win of a stack, part by part, into its place in the batch.
func (u unit) stack(r *pixels.Reader, d *dataset, f *pixels.Raster, a *catalog.Asset, win shuffle.Box) error {
	engine, pending := u.p.engine, u.p
	share := r.Share
	return eachPart(f, a, func(k int, part *pixels.Raster, l *pixels.Lay) error {
		asset := a.Parts[k]
		convs := &part.Final
		if pending.layout.rasters[u.field].native {
			convs = &part.Wire
		}
		cv, err := convs.Get(asset.Index)
		if err != nil {
			return asset.Fault(err)
		}
		target := pending.sink(u.field, u.row, u.step, cv, win, true)
		target.Field = part
		r.Share = share
		r.Share.Key.Part = k
		switch {
		case !d.resamples(u.field) && l.Same:
			return r.Aligned(pending.ctx, asset, l, win, target, target.Masked(convs, l.Inside(win)))
		case l.Whole():
			target.Win = shuffle.Box{H: part.H, W: part.W}
			return r.Resampled(pending.ctx, asset, win, target, engine.options.MaxChunkBytes)
		}
		asset, l, mapping, err := engine.coarserPart(pending.ctx, d, part, a, k, l, win)
		if err != nil {
			return err
		}
		if asset.Raster != nil {
			r.Share.Key.Level = 1 + asset.Overview
		}
		target.Win = shuffle.Box{H: part.H, W: part.W}
		return r.Warped(pending.ctx, asset, l, mapping, win, target, engine.options.MaxChunkBytes)
	})
}

// coarserPart returns the raster that window win of a stack reads for part k, which lies on another grid as l
// describes: the part itself or, if the stack is coarser, the overview of that resolution. It also returns how that
// raster lies, and the mapping to it.
func (e *Engine) coarserPart(ctx context.Context, d *dataset, part *pixels.Raster, a *catalog.Asset, k int,
	l *pixels.Lay, win shuffle.Box) (catalog.Asset, *pixels.Lay, *warp.Mapping, error) {
	asset := a.Parts[k]
	mapping, err := l.Warp(win, part.H, part.W)
	if err != nil {
		return asset, l, mapping, asset.Fault(err)
	}
	if !part.WantsOverview(spec.AutoOverviews, mapping) {
		return asset, l, mapping, nil
	}
	levels, err := d.overviews.of(ctx, e.options, asset)
	if err != nil {
		return asset, l, mapping, err
	}
	level := pixels.Coarsest(levels.Indexes, mapping)
	if level < 0 {
		return asset, l, mapping, nil
	}
	stack := *a
	stack.Parts = slices.Clone(a.Parts)
	stack.Parts[k] = pixels.AtOverview(asset, levels, level)
	lay, err := part.NewLay(&stack, k)
	if err != nil {
		return asset, l, mapping, err
	}
	mapping, err = lay.Warp(win, part.H, part.W)
	return stack.Parts[k], &lay, mapping, stack.Parts[k].Fault(err)
}
