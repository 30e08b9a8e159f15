package loader

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/crs/warp"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// explainGround adds the reads of the scenes of a window. Headers do not show all: scenes are read one after the other
// until no pixel is missing, so a run may skip those after the first.
func (e *Engine) explainGround(ctx context.Context, d *dataset, draw *shuffle.Draw, field int, p dryrun.Asset,
	plan *chunk.RunPlan) (out []dryrun.Asset, _ error) {
	f := d.rasters[field]
	names := f.Field.Parts()
	err := eachPiece(f, func(part int, of *pixels.Raster) error {
		seen := make([]byte, of.H*of.W)
		left := len(seen)
		return e.eachScene(ctx, d, draw, field, part, p.Step, func(row int64, a *catalog.Asset, bands []int,
			m *warp.Mapping, _ bool) (bool, error) {
			in, copied := of.Taken(m)
			if in.Y0 >= in.Y1 || in.X0 >= in.X1 {
				return true, nil
			}
			asset := p
			asset.Row, asset.URI, asset.Resampled = row, a.URI, !copied
			if a.Raster != nil {
				asset.Overview = &a.Overview
			}
			if part >= 0 {
				asset.Part, asset.Stack = names[part].Column+names[part].Pattern, part
			}
			asset.Size = shuffle.Box{H: a.Index.Height, W: a.Index.Width}
			asset.Window = shuffle.Box{Y: in.Y0, X: in.X0, H: in.Y1 - in.Y0, W: in.X1 - in.X0}
			if err := e.explainReads(ctx, d, *a, bands, true, in, &asset, plan); err != nil {
				return false, err
			}
			out = append(out, asset)
			left -= m.Cover(seen)
			return left > 0 || of.BlendsScenes(d.sampler.Mosaic), nil
		})
	})
	return out, err
}
