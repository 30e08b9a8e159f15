package loader

import (
	"context"
	"math"

	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// needs returns the chunks that the windows of a sample need and may share.
func (e *Engine) needs(ctx context.Context, draw *shuffle.Draw) (out []pixels.Need, err error) {
	owner := e.set(draw)
	err = crash.Call(func() error {
		for i, step := range owner.images() {
			row := e.rowRead(owner, draw, i, step)
			if row < 0 {
				continue
			}
			assets, err := e.explainWindow(ctx, owner, draw, i, step, row)
			if err != nil {
				return err
			}
			out = append(out, needs(assets)...)
		}
		return nil
	})
	return out, err
}

// needs returns the chunks of assets that windows need and may share.
func needs(assets []dryrun.Asset) (out []pixels.Need) {
	for i := range assets {
		for _, c := range assets[i].Chunks {
			key := assets[i].Key
			if c.Len > 0 && c.Rows > 0 { // sparse chunks, those of arrays and those in pieces are not shared
				if key.Chunk, key.Mask = c.Chunk, c.Mask; c.Source != 0 {
					key = pixels.TileKey{Source: c.Source, Chunk: c.Chunk}
				}
				out = append(out, pixels.Need{Key: key, Rows: c.Rows, Bytes: c.Decoded,
					Compressed: c.Len < int64(c.Decoded)})
			}
		}
	}
	return out
}

// explainWindow describes the reads of a window of a field, from a row of the table or on the ground.
func (e *Engine) explainWindow(ctx context.Context, d *dataset, draw *shuffle.Draw, field, step int,
	row int64) (out []dryrun.Asset, _ error) {
	if d.ground != nil {
		return e.explainGround(ctx, d, draw, field, step)
	}
	err := e.eachRead(ctx, d, draw, field, step, row, func(rd *rasterRead) error {
		asset, err := e.explainRead(ctx, d, field, step, rd)
		asset.View = draw.View
		out = append(out, asset)
		return err
	})
	return out, err
}

// explainGround describes the reads of a window on the ground. Headers do not show all: scenes are read one after the
// other until no pixel is missing, so a run may skip those after the first.
func (e *Engine) explainGround(ctx context.Context, d *dataset, draw *shuffle.Draw, field, step int) (
	out []dryrun.Asset, _ error) {
	err := eachPiece(d.rasters[field], func(part int, of *pixels.Raster) error {
		seen := make([]byte, of.H*of.W)
		left := len(seen)
		return e.eachScene(ctx, d, draw, field, part, step, func(rd *rasterRead) (bool, error) {
			asset, err := e.explainRead(ctx, d, field, step, rd)
			asset.View = draw.View
			out = append(out, asset)
			left -= rd.mapping.Cover(seen)
			return left > 0 || of.BlendsScenes(d.sampler.Mosaic), err
		})
	})
	return out, err
}

// explainRead describes a read by a reader that has read nothing yet.
func (e *Engine) explainRead(ctx context.Context, d *dataset, field, step int, rd *rasterRead) (dryrun.Asset, error) {
	a, in := &rd.asset, rd.in
	p := dryrun.Asset{Field: d.rasters[field].Name, Step: step, Row: rd.row, URI: a.URI, Window: rd.win,
		Size:      shuffle.Box{H: a.Index.Height, W: a.Index.Width},
		Resampled: rd.resampled, Raster: rd.raster, Key: d.tileKey(field, step, rd),
		Again: func(context.Context, *pixels.DryReader) error { return nil }}
	if rd.part >= 0 {
		part := d.rasters[field].Field.Parts()[rd.part]
		p.Part = part.Column + part.Pattern
	}
	if rd.part >= 0 || d.ground != nil {
		p.Window = shuffle.Box{Y: in.Y0, X: in.X0, H: max(in.Y1-in.Y0, 0), W: max(in.X1-in.X0, 0)}
	}
	if a.Raster != nil {
		p.Overview = &a.Overview
	}
	if rd.part >= 0 && rd.empty() {
		return p, nil
	}
	file, err := e.pixelFile(ctx, *a, &p)
	if err != nil {
		return p, err
	}
	gap, headers, loose := source.Gap(file), source.Held(file), false
	// The head of a chip is in memory when its pixels are read, for that comes next. A later window may come too late,
	// and the heads of the members of a container displace each other.
	if len(headers) > 0 && (!d.kind.Whole || a.Member != "") {
		headers, loose = nil, true
	}
	var mask pixels.Sink
	if d.ground != nil || rd.raster.Final.Nodata {
		mask = pixels.Nowhere{}
	}
	if p.Remote = a.Bytes == nil && a.Remote(); p.Remote {
		p.Gap = gap
	}
	p.Kept = p.Remote && (a.Size == 0 || a.ETag != "")
	p.Known = p.Kept && a.Size > 0 && !a.Index.OfArray()
	measured := p.Remote && p.Object == nil
	p.Again = func(ctx context.Context, r *pixels.DryReader) error {
		r.Gap, r.Headers, r.Measured = gap, headers, measured
		r.Loose = r.Loose || loose
		return r.Read(ctx, *a, in, rd.bands.Picked, mask)
	}
	reader := pixels.NewDryReader(e.options)
	reader.Wholly = e.toPlan != nil && d.sharesChunks(false)
	if d.pooled() && e.tiles != nil { // tiles are shared, and so decoded whole
		reader.Share.Tiles = pixels.NewTileCounter(math.MaxInt64)
	}
	err = p.Again(ctx, reader)
	p.Runs, p.Chunks = reader.Runs, reader.Chunks
	return p, err
}

// pixelFile opens the file of an asset as a run does before it reads pixels, and notes in p where it is in a cache. It
// returns nil for local files and arrays. If a catalog or the reader of the header knows the size of the file, it costs
// no request.
func (e *Engine) pixelFile(ctx context.Context, a catalog.Asset, p *dryrun.Asset) (source.Reader, error) {
	switch {
	case a.Bytes != nil:
		return a.Reader(), nil
	case a.Index.OfArray() || !a.Remote():
		return nil, nil
	}
	file, err := source.OpenKnown(ctx, e.options.Opener, a.URI, a.Known())
	if err != nil {
		return nil, err
	}
	p.Object, p.Start = source.Place(file)
	return file, file.Close()
}

// plansAhead reports whether the engine plans windows that no ticket has asked for. The headers of remote files would
// take requests that a run which ends early does not need, and of these many batches are asked for ahead anyway.
func (e *Engine) plansAhead() bool { return e.toPlan != nil && !e.remote() }

// newTilePlanner returns a planner for the tiles of the engine.
func (e *Engine) newTilePlanner() *tilePlanner {
	return &tilePlanner{tiles: e.tiles, ahead: e.plansAhead(), samples: e.samples, steps: e.Steps(),
		batch: e.spec.BatchSize, lastEpoch: e.plan.LastEpoch(),
		needs: func(ctx context.Context, t steps.Ticket, row int) []pixels.Need {
			if t.Position(row, e.samples) < 0 {
				return nil
			}
			draw := e.plan.Draw(t, row)
			if !e.set(&draw).sharesChunks(len(t.Corners) > 0) {
				return nil
			}
			needs, _ := e.needs(ctx, &draw) // workers report what is bad
			return needs
		}}
}
