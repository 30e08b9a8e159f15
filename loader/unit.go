package loader

import (
	"errors"
	"iter"
	"slices"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
)

// do decodes one field of one row, or of one step of it, into its place in the batch.
func (u workUnit) do(r *pixels.Reader) error {
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
	if u.p.engine.spans != nil && source.SpansOf(u.p.ctx) != nil {
		u.p.engine.spans.prepare(u.p.ctx, draw)
	}
	err := u.pixels(r, set, draw)
	if errors.Is(err, rows.ErrLacks) {
		u.p.clearStep(u.field, u.row, u.step)
		return nil
	}
	if err == nil && u.p.there != nil && u.exists(set, draw) {
		u.p.noteRead(u.field, u.row, u.step)
	}
	return err
}

// exists reports whether there is anything to read for the field, in any of the sample's windows.
func (u workUnit) exists(d *dataset, draw *shuffle.Draw) bool {
	if d.ground == nil {
		return u.p.engine.rowRead(d, draw, u.field, u.step) >= 0
	}
	plan := u.p.engine.plan
	for i, view := range d.ofViews() {
		window := plan.View(draw, i)
		rows := slices.Clone(view.sceneRows(plan, &window, view.rasters[u.field], u.step))
		if len(view.ground.WithPixels(plan.Place(&window), rows)) > 0 {
			return true
		}
	}
	return false
}

// pixels decodes a raster field of one row, or of one step of it, into its place in the batch.
func (u workUnit) pixels(r *pixels.Reader, d *dataset, draw *shuffle.Draw) error {
	engine, pending := u.p.engine, u.p
	row := engine.rowRead(d, draw, u.field, u.step)
	if row < 0 && (d.ground == nil || d.views == nil) { // on the ground, further windows may see other scenes
		pending.clearStep(u.field, u.row, u.step)
		return nil
	}
	if s := pending.same[u]; s != nil && draw.Attempt == 0 {
		return s.pixels(r, u, row)
	}
	if d.views != nil {
		defer u.announce(r, viewOrder(0))()
		return u.windows(r, row, viewOrder(0))
	}
	return u.window(r, d, draw, row)
}

// window decodes a window of a raster field.
func (u workUnit) window(r *pixels.Reader, d *dataset, draw *shuffle.Draw, row int64) error {
	pending := u.p
	// The reader serves all datasets in turn, so Share must be reset, otherwise the tiles of the
	// last unit's raster would be used.
	r.Share = pixels.Shared{}
	if d.ground != nil {
		return u.ground(r, d, draw)
	}
	if raster := d.rasters[u.field]; raster.Parts != nil && raster.Coloured() {
		target, err := pending.coloured(u, raster)
		if err != nil {
			return err
		}
		return r.Coloured(raster, &chunk.Index{}, target, nil, func(to *pixels.Row, _ *pixels.Converters) error {
			return u.reads(r, d, draw, row, to)
		})
	}
	return u.reads(r, d, draw, row, nil)
}

// reads decodes the reads of a window of a raster field, which go to the row stack if it is not nil.
func (u workUnit) reads(r *pixels.Reader, d *dataset, draw *shuffle.Draw, row int64, stack *pixels.Row) error {
	engine, pending := u.p.engine, u.p
	return engine.eachRead(pending.ctx, d, draw, u.field, u.step, row, func(rd *rasterRead) error {
		if layout := &pending.layout.rasters[d.layoutOf(u.field)]; layout.native && rd.raster.Native != layout.dtype {
			pending.mixed.Store(true)
			return nil
		}
		r.Clock.Lap(resources.StageRead) // of headers, if this is the first time
		key := d.tileKey(u.field, u.step, rd)
		switch {
		case d.pooled():
			r.Share = pixels.Shared{Tiles: engine.tiles, Key: key}
		case u.order > 0:
			r.Share = pixels.Shared{Tiles: r.ForViews(), Key: key, Order: u.order}
		case engine.toPlan != nil && d.sharesChunks(len(pending.ticket.Corners) > 0):
			r.Share = pixels.Shared{Tiles: engine.tiles, Key: key, Order: pending.plan.order + int64(u.row)}
		}
		if rd.part >= 0 {
			return u.readPart(r, rd, stack)
		}
		return u.readWindow(r, d, rd)
	})
}

// viewOrder returns the place of a view's window in Reader.ForViews.
func viewOrder(view int) int64 { return int64(view) + 1 }

// announce announces what is needed twice among the windows of a raster field of a sample, so that it is decoded once.
// first is the place of the first one in Reader.ForViews. The caller must call over when they are read.
func (u workUnit) announce(r *pixels.Reader, first int64) (over func()) {
	d, draw, tiles := u.p.set(u.row), &u.p.draws[u.row], r.ForViews()
	row := u.p.engine.rowRead(d, draw, u.field, u.step)
	views := d.ofViews()
	announced := make([][]pixels.Need, len(views))
	for i, view := range views {
		drawn := u.p.engine.plan.View(draw, i)
		if view.pooled() {
			continue
		}
		assets, err := u.p.engine.explainWindow(u.p.ctx, view, &drawn, u.field, u.step, row)
		if err != nil {
			continue // reading it gives the error
		}
		announced[i] = needs(assets)
		tiles.Plan(first+int64(i), announced[i])
	}
	return func() {
		for i, chunks := range announced {
			tiles.Forget(first+int64(i), chunks)
		}
	}
}

// windows decodes all windows of a raster field of a sample. first is as of announce, or 0.
func (u workUnit) windows(r *pixels.Reader, row, first int64) error {
	d, draw := u.p.set(u.row), &u.p.draws[u.row]
	for i, view := range d.ofViews() {
		drawn := u.p.engine.plan.View(draw, i)
		if u.view = i; first > 0 {
			u.order = first + int64(i)
		}
		if err := u.window(r, view, &drawn, row); err != nil {
			return err
		}
	}
	return nil
}

// readWindow decodes a read of a field into its place in the batch.
func (u workUnit) readWindow(r *pixels.Reader, d *dataset, rd *rasterRead) error {
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

// readPart decodes a read of a part of a stack into its place in a row or, without one, in the batch.
func (u workUnit) readPart(r *pixels.Reader, rd *rasterRead, stack *pixels.Row) error {
	pending, part, limit := u.p, rd.raster, u.p.engine.options.MaxChunkBytes
	convs := part.Final
	if pending.layoutOf(u).native {
		convs = part.Wire
	}
	cv, err := convs.Get(rd.index, rd.bands)
	if err != nil {
		return rd.asset.Fault(err)
	}
	var target *pixels.Row
	if stack == nil {
		target = pending.sink(u, cv, rd.win, true)
	} else {
		target = new(*stack)
		target.Cv, target.Win = cv, rd.win
	}
	target.Field, target.Bands = part, rd.bands
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
	target.PadSteps()
	pending.hasSteps(u, rd.bands)
	return rd.asset.Fault(target.CheckRange())
}

// row returns the sink for a read of a raster field, and the casts of its pixels. The sink shows the pixels of rd.in of
// the window, and writes the mask only if the spec asks for it, if pixels may be missing, or if the bad sample before
// this substitute may have written it.
func (p *Pending) row(u workUnit, rd *rasterRead) (*pixels.Row, *pixels.Converters, error) {
	layout, field, x := p.layoutOf(u), rd.raster.Tensor(), rd.asset.Index
	convs := castsOf(field, layout)
	if rd.raster.Coloured() {
		x = &chunk.Index{Height: x.Height, Width: x.Width} // nodata is looked for in the colours
	}
	convert, err := convs.Get(x, rd.bands)
	if err != nil {
		return nil, nil, err
	}
	whole := rd.in.Y1-rd.in.Y0 == rd.win.H && rd.in.X1-rd.in.X0 == rd.win.W
	padded := !whole || rd.bands.Lacking != nil
	mask := !layout.native || padded || convs.Miss(x) || p.draws[u.row].Attempt > 0
	target := p.sink(u, convert, rd.win, mask)
	target.Field = field
	return target, convs, nil
}

// layoutOf returns the layout of the tensor of a unit.
func (p *Pending) layoutOf(u workUnit) *rasterLayout {
	return &p.layout.rasters[p.set(u.row).view(u.view).layoutOf(u.field)]
}

// castsOf returns the casts from the stored pixels of a field to the dtype of its tensor in a batch.
func castsOf(field *pixels.Raster, l *rasterLayout) *pixels.Converters {
	if l.native {
		return field.Wire
	}
	return field.Final
}

// sink returns the writer of one step of a field of a row, or of a view of it. With masked it also writes the mask, if
// the tensor has one.
func (p *Pending) sink(u workUnit, cv *einops.Converter, win shuffle.Box, masked bool) *pixels.Row {
	set := p.set(u.row).view(u.view)
	number := set.layoutOf(u.field)
	layout := &p.layout.rasters[number]
	dst := einops.Target{Data: p.buf[layout.data:layout.end]}
	if layout.mask >= 0 && masked {
		dst.Mask = p.mask(number)
	}
	raster := set.rasters[u.field].Tensor()
	turn := p.engine.plan.View(&p.draws[u.row], u.view).Transform
	return &pixels.Row{Field: raster, Layout: raster, Plan: layout.plan, Dst: dst, Cv: cv, N: u.row,
		T: set.place*max(raster.Steps, 1) + u.step, Win: win, Transform: turn}
}

// ground decodes the window of a raster field out of the scenes that it sees.
func (u workUnit) ground(r *pixels.Reader, d *dataset, draw *shuffle.Draw) error {
	engine, pending, whole := u.p.engine, u.p, d.rasters[u.field]
	target, err := pending.coloured(u, whole)
	if err != nil {
		return err
	}
	return r.Coloured(whole, &chunk.Index{}, target, nil, func(to *pixels.Row, _ *pixels.Converters) error {
		return eachPiece(whole, func(part int, of *pixels.Raster) (err error) {
			row := *to
			if part >= 0 {
				row.Field = of
				if row.Cv, err = of.Final.Get(&chunk.Index{}, nil); err != nil {
					return err
				}
			}
			mosaic := r.Mosaic(&row, d.sampler.Mosaic)
			err = engine.eachScene(pending.ctx, d, draw, u.field, part, u.step, func(rd *rasterRead) (bool, error) {
				if u.order > 0 {
					r.Share = pixels.Shared{Tiles: r.ForViews(), Key: d.tileKey(u.field, u.step, rd), Order: u.order}
				}
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

// coloured returns the sink for the whole window of a raster field, of which no nodata is known.
func (p *Pending) coloured(u workUnit, raster *pixels.Raster) (*pixels.Row, error) {
	made := raster.Tensor()
	cv, err := made.Final.Get(&chunk.Index{}, nil)
	if err != nil {
		return nil, err
	}
	target := p.sink(u, cv, shuffle.Box{H: raster.H, W: raster.W}, true)
	target.Field = made
	return target, nil
}

// clearStep fills one step of a raster field of a row, in all views.
func (p *Pending) clearStep(field, k, step int) {
	for view, set := range p.set(k).ofViews() {
		u := workUnit{p: p, row: k, field: field, step: step, view: view}
		cv, err := castsOf(set.rasters[field].Tensor(), p.layoutOf(u)).Get(&chunk.Index{}, nil)
		if err != nil {
			// It was made when the field was compiled.
			panic("loader: a cast without nodata does not exist: " + err.Error())
		}
		p.sink(u, cv, shuffle.Box{}, true).Clear()
	}
}

// units yields the units of a row.
func (p *Pending) units(row int) iter.Seq[workUnit] {
	return func(yield func(workUnit) bool) {
		for field, step := range p.group.lead().images() {
			if !yield(workUnit{p: p, row: row, field: field, step: step}) {
				return
			}
		}
		if p.group.readsColumns() {
			yield(workUnit{p: p, row: row, field: -1})
		}
	}
}

// newReader returns a reader for one worker. The caller must end it with endReader.
func (e *Engine) newReader() *pixels.Reader {
	reader := pixels.NewReader(e.options)
	reader.Strict = e.spec.Strict
	reader.SetClock(e.options.Stages.Clock())
	reader.SetRecoded(e.recoded)
	return reader
}

// endReader ends the use of a reader.
func endReader(r *pixels.Reader) {
	r.Clock.Stop()
	r.Close()
}
