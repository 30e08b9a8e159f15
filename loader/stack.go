package loader

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/loader/dryrun"
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

// explainStack notes what is read of the parts of a stack for a window.
func (e *Engine) explainStack(ctx context.Context, d *dataset, field int, a *catalog.Asset, p dryrun.Asset,
	plan *chunk.RunPlan) (out []dryrun.Asset, _ error) {
	f, names := d.rasters[field], d.rasters[field].Field.Parts()
	err := eachPart(f, a, func(k int, part *pixels.Raster, l *pixels.Lay) error {
		q, asset := p, a.Parts[k]
		q.Part, q.Stack = names[k].Column+names[k].Pattern, k
		in := l.Inside(p.Window)
		if q.Resampled = !l.Same || d.resamples(field); q.Resampled && !l.Whole() {
			m, err := l.Warp(p.Window, part.H, part.W)
			if err != nil {
				return asset.Fault(err)
			}
			in = part.Source(m)
		}
		q.URI, q.Size = asset.URI, shuffle.Box{H: asset.Index.Height, W: asset.Index.Width}
		q.Window = shuffle.Box{Y: in.Y0, X: in.X0, H: max(in.Y1-in.Y0, 0), W: max(in.X1-in.X0, 0)}
		if q.Window.H > 0 && q.Window.W > 0 {
			if err := e.explainReads(ctx, d, asset, part.Picked, part.Final.Nodata, in, &q, plan); err != nil {
				return err
			}
		}
		out = append(out, q)
		return nil
	})
	return out, err
}

// explainReads notes what is read of box in of an asset, and of its mask where it counts.
func (e *Engine) explainReads(ctx context.Context, d *dataset, a catalog.Asset, bands []int, masked bool, in chunk.Box,
	p *dryrun.Asset, plan *chunk.RunPlan) (err error) {
	how := dryrun.Reading{MaxChunk: e.options.MaxChunkBytes}
	if how.Gap, err = e.gap(ctx, a); err != nil {
		return err
	}
	if p.Add(a.Index, in, bands, plan, how, false); a.Index.Blocks != nil {
		return p.AddBlocks(ctx, a.Index, in, d.sampler.Kind == spec.TileWindow)
	}
	if m := a.Index.Mask; m != nil && masked {
		in, of := pixels.MaskBands(m, in, bands)
		p.Add(m, in, of, plan, how, true)
	}
	return nil
}

// stack reads all parts of a stack completely.
func (c *check) stack(ctx context.Context, r *pixels.Reader, f *pixels.Raster, a *catalog.Asset) error {
	return eachPart(f, a, func(k int, part *pixels.Raster, _ *pixels.Lay) error {
		asset := a.Parts[k]
		all := chunk.Box{B1: asset.Index.Bands, Y1: asset.Index.Height, X1: asset.Index.Width}
		return r.Read(ctx, asset, all, part.Picked, pixels.Nowhere{}, pixels.Nowhere{})
	})
}
