package loader

import (
	"context"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
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
			read := dryrun.Asset{Field: owner.rasters[i].Name, Step: step, Row: row}
			assets, err := e.explainWindow(ctx, owner, draw, i, read)
			if err != nil {
				return err
			}
			out = append(out, owner.needs(assets)...)
		}
		return nil
	})
	return out, err
}

// explainWindow adds the reads of a window of an asset; of a stack, the reads of each part.
func (e *Engine) explainWindow(ctx context.Context, d *dataset, draw *shuffle.Draw, field int,
	p dryrun.Asset) ([]dryrun.Asset, error) {
	raster := d.rasters[field]
	asset, err := d.table.Fields[d.column(field, p.Step)].Asset(ctx, p.Row)
	if err != nil {
		return nil, err
	}
	win, err := e.windowOf(ctx, d, draw, field, p.Row, asset)
	if err != nil {
		return nil, asset.Fault(err)
	}
	p.URI, p.Size = asset.URI, shuffle.Box{H: asset.Index.Height, W: asset.Index.Width}
	p.Window = win
	if asset.Parts != nil {
		return e.explainStack(ctx, d, field, &asset, p)
	}
	inside := d.inside(draw, raster, win, asset.Index.Height, asset.Index.Width)
	picked, err := d.names.bandsOf(ctx, raster, asset)
	if err != nil {
		return nil, err
	}
	err = e.explainReads(ctx, d, asset, picked.Picked, raster.Final.Nodata, inside, &p)
	return []dryrun.Asset{p}, err
}

// explainStack adds the reads of the parts of a stack for a window.
func (e *Engine) explainStack(ctx context.Context, d *dataset, field int, a *catalog.Asset,
	p dryrun.Asset) (out []dryrun.Asset, _ error) {
	f, names := d.rasters[field], d.rasters[field].Field.Parts()
	err := eachPart(f, a, func(k int, part *pixels.Raster, l *pixels.Lay) error {
		planned, asset := p, a.Parts[k]
		planned.Part, planned.Stack = names[k].Column+names[k].Pattern, k
		inside := l.Inside(p.Window)
		if planned.Resampled = !l.Same || d.resamples(); planned.Resampled && !l.Whole() {
			overview, _, mapping, err := e.coarserPart(ctx, d, part, a, k, l, p.Window)
			if err != nil {
				return err
			}
			if asset = overview; asset.Raster != nil {
				planned.Overview = &asset.Overview
			}
			inside = part.Source(mapping)
		}
		planned.URI, planned.Size = asset.URI, shuffle.Box{H: asset.Index.Height, W: asset.Index.Width}
		planned.Window = shuffle.Box{
			Y: inside.Y0, X: inside.X0, H: max(inside.Y1-inside.Y0, 0), W: max(inside.X1-inside.X0, 0),
		}
		if planned.Window.H > 0 && planned.Window.W > 0 {
			if err := e.explainReads(ctx, d, asset, part.Picked, part.Final.Nodata, inside, &planned); err != nil {
				return err
			}
		}
		out = append(out, planned)
		return nil
	})
	return out, err
}

// explainReads adds the reads of box in of an asset, and of its mask if the field uses it, by a reader that has read
// nothing yet.
func (e *Engine) explainReads(ctx context.Context, d *dataset, a catalog.Asset, bands []int, masked bool, in chunk.Box,
	p *dryrun.Asset) error {
	file, err := e.pixelFile(ctx, a, p)
	if err != nil {
		return err
	}
	gap, headers, loose := source.Gap(file), source.Held(file), false
	// The head of a chip is in memory when its pixels are read, for that comes next. A later window may come too late,
	// and the heads of the members of a container displace each other.
	if len(headers) > 0 && (d.sampler.Kind != spec.WholeChip || a.Member != "") {
		headers, loose = nil, true
	}
	var mask pixels.Sink
	if masked {
		mask = pixels.Nowhere{}
	}
	if p.Remote = a.Bytes == nil && a.Remote(); p.Remote {
		p.Gap = gap
	}
	p.Kept = p.Remote && (a.Size == 0 || a.ETag != "")
	p.Known = p.Kept && a.Size > 0 && a.Index.Blocks == nil
	p.Again = func(ctx context.Context, r *pixels.DryReader) error {
		r.Gap, r.Headers, r.Measured = gap, headers, p.Remote && p.Object == nil
		r.Loose = r.Loose || loose
		return r.Read(ctx, a, in, bands, pixels.Nowhere{}, mask)
	}
	reader := pixels.NewDryReader(e.options)
	if d.byTile() && e.tiles != nil { // tiles are shared, and so decoded whole
		reader.Share.Tiles = pixels.NewTileCounter(math.MaxInt64)
	}
	err = p.Again(ctx, reader)
	p.Runs, p.Chunks = reader.Runs, reader.Chunks
	return err
}

// pixelFile opens the file of an asset as a run does before it reads pixels, and notes in p where it is in a cache. It
// returns nil for local files and arrays. If a catalog or the reader of the header knows the size of the file, it costs
// no request.
func (e *Engine) pixelFile(ctx context.Context, a catalog.Asset, p *dryrun.Asset) (source.Reader, error) {
	switch {
	case a.Bytes != nil:
		return a.Reader(), nil
	case a.Index.Blocks != nil || !a.Remote():
		return nil, nil
	}
	file, err := source.OpenKnown(ctx, e.options.Opener, a.URI, a.Known())
	if err != nil {
		return nil, err
	}
	p.Object, p.Start = source.Place(file)
	return file, file.Close()
}

// planned returns what Engine.tiles is to be told about the ticket.
func (p *Pending) planned() planned {
	named := len(p.ticket.Corners) > 0
	engine, draws := p.engine, slices.Clone(p.draws) // as they stand before substitutes replace bad ones
	return planned{&p.plan, p.order, len(draws), func(k int) ([]pixels.Need, error) {
		if p.ticket.Position(k, engine.samples) < 0 || !engine.set(&draws[k]).sharesChunks(named) {
			return nil, nil
		}
		return engine.needs(p.ctx, &draws[k])
	}}
}
