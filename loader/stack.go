package loader

import (
	"github.com/chaski-eo/chaski/loader/pixels"
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
		if err := part.Fits(a.Parts[k].Index); err != nil {
			return a.Parts[k].Fault(err)
		}
		l, err := part.NewLay(a, k)
		if err != nil {
			return err
		}
		if err := do(k, part, &l); err != nil {
			return err
		}
	}
	return nil
}

// stack decodes window win of a stack, part by part, into its place in the batch.
func (u unit) stack(r *pixels.Reader, d *dataset, f *pixels.Raster, a *catalog.Asset, win shuffle.Box) error {
	e, p := u.p.engine, u.p
	share := r.Share
	return eachPart(f, a, func(k int, part *pixels.Raster, l *pixels.Lay) error {
		asset := a.Parts[k]
		convs := &part.Final
		if p.layout.rasters[u.field].native {
			convs = &part.Wire
		}
		cv, err := convs.Get(asset.Index)
		if err != nil {
			return asset.Fault(err)
		}
		to := p.sink(u.field, u.row, u.step, cv, win, true)
		to.Field = part
		r.Share = share
		r.Share.Key.Part = k
		switch {
		case !d.resamples(u.field) && l.Same:
			return r.Aligned(p.ctx, asset, l, win, to, to.Masked(convs, l.Inside(win)))
		case l.Whole():
			to.Win = shuffle.Box{H: part.H, W: part.W}
			return r.Resampled(p.ctx, asset, win, to, e.options.MaxChunkBytes)
		}
		m, err := l.Warp(win, part.H, part.W)
		if err != nil {
			return asset.Fault(err)
		}
		to.Win = shuffle.Box{H: part.H, W: part.W}
		return r.Warped(p.ctx, asset, l, m, win, to, e.options.MaxChunkBytes)
	})
}
