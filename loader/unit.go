package loader

import (
	"iter"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle"
)

// do decodes one field of one row, or of one step of it, into its place in the batch.
func (u unit) do(r *pixels.Reader) error {
	draw := &u.p.draws[u.row]
	set := u.p.set(u.row)
	if u.field < 0 {
		for _, c := range u.p.parts {
			if c.fill == nil {
				continue
			}
			if err := c.fill(r, set, draw, u.row); err != nil {
				if err = u.p.lost(u.row, err); err != nil {
					return err
				}
				if c.clear != nil {
					c.clear(u.row)
				}
			}
		}
		return nil
	}
	err := u.pixels(r, set, draw)
	if err == nil && u.p.there != nil && u.exists(set, draw) {
		u.p.found(u.field, u.row, u.step)
	}
	return err
}

// exists reports whether there is anything to read for the field.
func (u unit) exists(d *dataset, draw *shuffle.Draw) bool {
	if d.ground != nil {
		return len(d.sceneRows(u.p.engine.plan, draw, d.rasters[u.field], u.step)) > 0
	}
	return u.p.engine.rowRead(d, draw, u.field, u.step) >= 0
}

// pixels decodes a raster field of one row, or of one step of it, into its place in the batch.
func (u unit) pixels(r *pixels.Reader, d *dataset, draw *shuffle.Draw) error {
	engine, pending := u.p.engine, u.p
	row := engine.rowRead(d, draw, u.field, u.step)
	if row < 0 {
		pending.clearStep(u.field, u.row, u.step)
		return nil
	}
	// The reader serves all datasets in turn, so Share must be reset, otherwise the tiles of the
	// last unit's raster would be used.
	r.Share = pixels.Shared{}
	if d.ground != nil {
		return u.ground(r, d, draw)
	}
	return engine.eachRead(pending.ctx, d, draw, u.field, u.step, row, func(rd *read) error {
		if layout := &pending.layout.rasters[u.field]; layout.native && rd.raster.Native != layout.dtype {
			pending.mixed.Store(true)
			return nil
		}
		r.Clock.Lap(resources.StageRead) // of headers, if this is the first time
		key := d.tileKey(u.field, u.step, rd)
		switch {
		case d.kind.tiles:
			r.Share = pixels.Shared{Tiles: engine.tiles, Key: key}
		case engine.toPlan != nil && d.sharesChunks(len(pending.ticket.Corners) > 0):
			r.Share = pixels.Shared{Tiles: engine.tiles, Key: key, Order: pending.order + int64(u.row)}
		}
		if rd.part >= 0 {
			return u.readPart(r, rd)
		}
		return u.readWindow(r, d, rd)
	})
}

// readWindow decodes a read of a field into its place in the batch.
func (u unit) readWindow(r *pixels.Reader, d *dataset, rd *read) error {
	pending, field, asset := u.p, rd.raster, &rd.asset
	target, convs, err := pending.row(u, rd)
	if err == nil {
		err = r.Probe(target)
	}
	if err != nil {
		return asset.Fault(err)
	}
	err = r.Coloured(field, asset.Index, target, convs, func(to *pixels.Row, convs *pixels.Converters) error {
		to.Bands = rd.bands
		if d.resamples() {
			// The sink is the resampled window, which has the field's size and begins at 0, 0.
			to.Win = shuffle.Box{H: field.H, W: field.W}
			err := r.Resampled(pending.ctx, *asset, rd.win, to, pending.engine.options.MaxChunkBytes)
			to.PadSteps()
			return err
		}
		if err := r.Read(pending.ctx, *asset, rd.in, rd.bands.Picked, to, to.Masked(convs, rd.in)); err != nil {
			return err
		}
		to.Pad(rd.in) // last, because a chunk also has pixels of the window that are not inside
		to.PadSteps()
		return nil
	})
	if err == nil {
		pending.hasSteps(u, rd.bands)
	}
	if field.Coloured() {
		if err == nil && !d.resamples() {
			target.Pad(rd.in) // past the edge there is no colour
		}
		return asset.Fault(err)
	}
	if err != nil {
		return err
	}
	return asset.Fault(target.CheckRange())
}

// readPart decodes a read of a part of a stack into its place in the batch.
func (u unit) readPart(r *pixels.Reader, rd *read) error {
	pending, part, limit := u.p, rd.raster, u.p.engine.options.MaxChunkBytes
	convs := part.Final
	if pending.layout.rasters[u.field].native {
		convs = part.Wire
	}
	cv, err := convs.Get(rd.index, rd.bands)
	if err != nil {
		return rd.asset.Fault(err)
	}
	target := pending.sink(u.field, u.row, u.step, cv, rd.win, true)
	target.Field = part
	if err := r.Probe(target); err != nil {
		return rd.asset.Fault(err)
	}
	switch {
	case !rd.resampled:
		err = r.Aligned(pending.ctx, rd.asset, rd.lay, rd.win, target, target.Masked(convs, rd.in))
	case rd.mapping == nil:
		target.Win = shuffle.Box{H: part.H, W: part.W}
		err = r.Resampled(pending.ctx, rd.asset, rd.win, target, limit)
	default:
		target.Win = shuffle.Box{H: part.H, W: part.W}
		err = r.Warped(pending.ctx, rd.asset, rd.lay, rd.mapping, rd.win, target, limit)
	}
	if err != nil {
		return err
	}
	return rd.asset.Fault(target.CheckRange())
}

// row returns the sink for a read of a raster field, and the casts of its pixels. The sink shows the pixels of rd.in of
// the window, and writes the mask only if the spec asks for it, if pixels may be missing, or if the bad sample before
// this substitute may have written it.
func (p *Pending) row(u unit, rd *read) (*pixels.Row, *pixels.Converters, error) {
	layout, field, x := p.layout.rasters[u.field], rd.raster.Tensor(), rd.asset.Index
	convs := castsOf(field, &layout)
	if rd.raster.Coloured() {
		x = &chunk.Index{Height: x.Height, Width: x.Width} // nodata is looked for in the colours
	}
	convert, err := convs.Get(x, rd.bands)
	if err != nil {
		return nil, nil, err
	}
	whole := rd.in.Y1-rd.in.Y0 == rd.win.H && rd.in.X1-rd.in.X0 == rd.win.W
	mask := !layout.native || !whole || rd.bands.Lacking != nil || convs.Miss(x) || p.draws[u.row].Attempt > 0
	target := p.sink(u.field, u.row, u.step, convert, rd.win, mask)
	target.Field = field
	return target, convs, nil
}

// castsOf returns the casts from the stored pixels of a field to the dtype of its tensor in a batch.
func castsOf(field *pixels.Raster, l *rasterLayout) *pixels.Converters {
	if l.native {
		return field.Wire
	}
	return field.Final
}

// converters returns the casts of a field's tensor for what has no pixels.
func (p *Pending) converters(k, field int) *pixels.Converters {
	return castsOf(p.set(k).rasters[field].Tensor(), &p.layout.rasters[field])
}

// sink returns the writer of one step of row k of a field. With masked it also writes the mask, if
// the tensor has one.
func (p *Pending) sink(field, k, step int, cv *einops.Converter, win shuffle.Box, masked bool) *pixels.Row {
	layout := p.layout.rasters[field]
	dst := einops.Target{Data: p.buf[layout.data:layout.end]}
	if layout.mask >= 0 && masked {
		dst.Mask = p.mask(field)
	}
	raster := p.set(k).rasters[field].Tensor()
	return &pixels.Row{Field: raster, Layout: raster, Plan: layout.plan, Dst: dst, Cv: cv, N: k, T: step, Win: win,
		Transform: p.draws[k].Transform}
}

// ground decodes the window of a raster field out of the scenes that it sees.
func (u unit) ground(r *pixels.Reader, d *dataset, draw *shuffle.Draw) error {
	engine, pending := u.p.engine, u.p
	return eachPiece(d.rasters[u.field], func(part int, of *pixels.Raster) error {
		made := of.Tensor()
		cv, err := made.Final.Get(&chunk.Index{}, nil)
		if err != nil {
			return err
		}
		target := pending.sink(u.field, u.row, u.step, cv, shuffle.Box{H: of.H, W: of.W}, true)
		target.Field = made
		return r.Coloured(of, &chunk.Index{}, target, nil, func(to *pixels.Row, _ *pixels.Converters) error {
			mosaic := r.Mosaic(to, d.sampler.Mosaic)
			err := engine.eachScene(pending.ctx, d, draw, u.field, part, u.step, func(rd *read) (bool, error) {
				err := mosaic.Add(pending.ctx, rd.raster, rd.asset, rd.bands.Picked, rd.mapping, rd.last,
					engine.options.MaxChunkBytes)
				return !mosaic.Full(), err
			})
			if err != nil {
				return err
			}
			return mosaic.End()
		})
	})
}

// clearStep fills one step of a raster field of a row.
func (p *Pending) clearStep(field, k, step int) {
	cv, err := p.converters(k, field).Get(&chunk.Index{}, nil)
	if err != nil {
		panic("loader: a cast without nodata does not exist: " + err.Error()) // it was made when the field was compiled
	}
	p.sink(field, k, step, cv, shuffle.Box{}, true).Clear()
}

// units yields the units of a row.
func (p *Pending) units(row int) iter.Seq[unit] {
	return func(yield func(unit) bool) {
		for field, step := range p.group.lead().images() {
			if !yield(unit{p, row, field, step}) {
				return
			}
		}
		if p.group.readsColumns() {
			yield(unit{p, row, -1, 0})
		}
	}
}

// newReader returns a reader for one worker. The caller must end it with endReader.
func (e *Engine) newReader() *pixels.Reader {
	reader := pixels.NewReader(e.options)
	reader.SetClock(e.options.Stages.Clock())
	reader.Slot.Urgent() // somebody waits for the batch
	return reader
}

// endReader ends the use of a reader.
func endReader(r *pixels.Reader) {
	r.Clock.Stop()
	r.Slot.Rest()
}
