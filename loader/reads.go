package loader

import (
	"context"
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// rasterRead names a raster, and the pixels of it that a window takes. A window of a field takes one read; of a stack
// it takes one of each part, and on the ground one of each scene. Workers and forecasts use the same reads.
type rasterRead struct {
	raster *pixels.Raster      // the field, or a part of its stack
	part   int                 // of a stack; -1 for other assets
	row    int64               // of the table
	asset  catalog.Asset       // the raster, or an overview of it
	index  *chunk.Index        // of the raster itself
	bands  *pixels.PickedBands // of the asset
	in     chunk.Box           // the pixels that are read, without bands; empty if the window misses the asset
	win    shuffle.Box         // the window, in pixels of the asset or of its stack; not set on the ground

	resampled bool          // a part or a scene lies on another grid than the window
	lay       *pixels.Lay   // of a part in its stack; nil for other assets
	mapping   *warp.Mapping // from the window to a part on another grid, or to a scene; nil for other assets
	last      bool          // no scene follows
}

// empty reports whether a read has no pixel.
func (rd *rasterRead) empty() bool { return rd.in.Y0 >= rd.in.Y1 || rd.in.X0 >= rd.in.X1 }

// eachRead calls do for the reads of a window of a field, from a row of the table.
func (e *Engine) eachRead(ctx context.Context, d *dataset, draw *shuffle.Draw, field, step int, row int64,
	do func(*rasterRead) error) error {
	raster := d.rasters[field]
	asset, err := d.table.Fields[d.column(field, step)].Asset(ctx, row)
	if err != nil {
		return err
	}
	win, err := e.windowOf(ctx, d, draw, field, row, asset)
	if err != nil {
		return asset.Fault(err)
	}
	if asset.Parts == nil {
		bands, err := d.names.bandsOf(ctx, raster, asset)
		if err != nil {
			return err
		}
		if raster, err = raster.For(asset.Index); err != nil {
			return asset.Fault(err)
		}
		return do(&rasterRead{raster: raster, part: -1, row: row, asset: asset, index: asset.Index, bands: bands,
			win: win, in: d.inside(draw, raster, win, asset.Index.Height, asset.Index.Width)})
	}
	return raster.EachPart(&asset, func(k int, part *pixels.Raster, l *pixels.Lay) error {
		if remark := partial(part, &asset.Parts[k], l); remark != "" {
			e.warnPartial(d, remark)
		}
		index := asset.Parts[k].Index
		rd := &rasterRead{raster: part, part: k, row: row, asset: asset.Parts[k], index: index, win: win, lay: l,
			bands: part.PlanesOf(nil, index), in: l.Inside(win), resampled: !l.Same || d.resamples()}
		if rd.resampled && !l.Whole() {
			if err := e.coarserPart(ctx, d, &asset, rd); err != nil {
				return err
			}
			rd.in = part.Source(rd.mapping)
		}
		return do(rd)
	})
}

// partial says, once for each part of a stack, that a raster covers less than the stack. Otherwise it returns "".
func partial(part *pixels.Raster, a *catalog.Asset, l *pixels.Lay) (said string) {
	if share := l.Share(); share < 1 {
		part.Partial.Do(func() {
			said = fmt.Sprintf("%s: %s covers %.2g %%", part.Name, a.Name(), 100*share)
		})
	}
	return said
}

func (e *Engine) warnPartial(d *dataset, said ...string) {
	e.options.Logger.Warn("rasters cover only a part of their stack: pixels beside them are nodata", "source",
		d.source.Source, "rasters", said)
}

// coarserPart sets the mapping of a read of stack a from a part on another grid. If the stack is coarser than the part,
// it is read from the overview of the stack's resolution.
func (e *Engine) coarserPart(ctx context.Context, d *dataset, a *catalog.Asset, rd *rasterRead) (err error) {
	height, width := rd.raster.H, rd.raster.W
	if rd.mapping, err = rd.lay.Warp(rd.win, height, width); err != nil {
		return rd.asset.Fault(err)
	}
	overview, err := d.overviewFor(ctx, e, rd.raster, spec.AutoOverviews, rd.asset, rd.mapping)
	if overview == nil {
		return err
	}
	stack := *a
	stack.Parts = slices.Clone(a.Parts)
	stack.Parts[rd.part] = *overview
	lay, err := rd.raster.NewLay(&stack, rd.part)
	if err != nil {
		return err
	}
	rd.asset, rd.lay = *overview, &lay
	rd.mapping, err = lay.Warp(rd.win, height, width)
	return overview.Fault(err)
}

// tileKey returns the key of the chunks of a read, but for Chunk and Mask.
func (d *dataset) tileKey(field, step int, rd *rasterRead) pixels.TileKey {
	column := d.column(field, step)
	key := pixels.TileKey{Set: d.number, Column: column, Part: max(rd.part, 0),
		Row: d.table.Fields[column].Same(rd.row)}
	if rd.asset.Raster != nil {
		key.Level = 1 + rd.asset.Overview
	}
	return key
}

// eachScene calls do for the reads of a draw's window on the ground from the scenes that it sees, the preferred ones
// first. Where the window is coarser, a scene is one of its overviews. part is the part of a stack that the field is,
// or -1. It stops when do returns false.
func (e *Engine) eachScene(ctx context.Context, d *dataset, draw *shuffle.Draw, field, part, step int,
	do func(*rasterRead) (more bool, _ error)) error {
	window := d.ground.Window(e.plan.Place(draw))
	whole := d.rasters[field]
	sceneRows := d.sceneRows(e.plan, draw, whole, step)
	for i, row := range sceneRows {
		asset, err := d.table.Fields[whole.TableColumn].Asset(ctx, row)
		if err != nil {
			return err
		}
		rd := &rasterRead{raster: whole, part: part, row: row, last: i == len(sceneRows)-1}
		if part >= 0 {
			if asset.Parts == nil {
				return asset.Fault(fault.New(fault.Corrupt, "asset", "the stack lost its parts"))
			}
			rd.raster, asset = whole.Parts[part], asset.Parts[part]
			rd.bands = rd.raster.PlanesOf(nil, asset.Index)
		}
		if err := rd.raster.Accepts(&asset); err != nil {
			return asset.Fault(err)
		}
		if part < 0 {
			if rd.bands, err = d.names.bandsOf(ctx, whole, asset); err != nil {
				return err
			}
			if rd.bands.Lacking != nil {
				return asset.Fault(fault.New(fault.Unsupported, "times", "it has %d steps of time: "+
					"scenes of windows on the ground have all that times picks", asset.Index.Steps()))
			}
		}
		if rd.raster, err = rd.raster.For(asset.Index); err != nil {
			return asset.Fault(err)
		}
		rd.index = asset.Index
		mapping, err := pixels.OnGround(window, &asset)
		if err != nil {
			return err
		}
		if rd.asset, rd.mapping, err = d.coarser(ctx, e, rd.raster, window, asset, mapping); err != nil {
			return err
		}
		var copied bool
		rd.in, copied = rd.raster.Taken(rd.mapping)
		if rd.resampled = !copied; rd.empty() {
			continue
		}
		if goesOn, err := do(rd); err != nil || !goesOn {
			return err
		}
	}
	return nil
}

// eachPiece calls do for a field, or for each part of a stack that it takes bands of, with the part's number or -1.
func eachPiece(f *pixels.Raster, do func(part int, of *pixels.Raster) error) error {
	if f.Parts == nil {
		return do(-1, f)
	}
	for k, part := range f.Parts {
		if part == nil {
			continue
		}
		if err := do(k, part); err != nil {
			return err
		}
	}
	return nil
}
