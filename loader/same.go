package loader

import (
	"slices"

	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/shuffle"
)

// sameRowsAlways is how many rows of a raster one worker does, however many workers there are.
const sameRowsAlways = 8

// noteSame finds the units whose rows have the same raster.
func (p *Pending) noteSame() {
	if p.same = nil; p.engine.spans != nil || !slices.ContainsFunc(p.group.sets, (*dataset).repeats) {
		return
	}
	type raster struct {
		set         *dataset
		field, step int
		row         int64
	}
	found := map[raster][]*sameRaster{}
	limit := p.sameRows()
	for row, pos := range p.batch.Positions {
		if pos < 0 {
			continue
		}
		set, draw := p.set(row), &p.draws[row]
		if !set.copies(len(p.ticket.Corners) > 0) {
			continue
		}
		for field, step := range p.group.lead().images() {
			column := &set.table.Fields[set.column(field, step)]
			tableRow := p.engine.rowRead(set, draw, field, step)
			if tableRow < 0 || !column.Repeats() {
				continue
			}
			key := raster{set, field, step, column.Same(tableRow)}
			of := found[key]
			if len(of) == 0 || len(of[len(of)-1].units) == limit {
				of = append(of, &sameRaster{})
				found[key] = of
			}
			last := of[len(of)-1]
			last.units = append(last.units, workUnit{p: p, row: row, field: field, step: step})
		}
	}
	p.same = map[workUnit]*sameRaster{}
	for _, of := range found {
		for _, s := range of {
			if len(s.units) == 1 {
				continue
			}
			for _, u := range s.units {
				p.same[u] = s
			}
		}
	}
}

// sameRows returns how many rows of one raster a worker does one after the other: more are shared among the workers,
// else one of them would read and decode all windows of a batch from a large image.
func (p *Pending) sameRows() int {
	workers := max(int(p.engine.workers.Load()), 1)
	if p.engine.options.Waits() { // for servers: at the start there are few workers, and more come as they wait
		workers = p.batch.Rows
	}
	return max(sameRowsAlways, (p.batch.Rows+workers-1)/workers)
}

// repeats reports whether some rows of the table have the same raster of a field.
func (d *dataset) repeats() bool {
	return d.ground == nil && slices.ContainsFunc(d.table.Fields, func(f rows.Field) bool { return f.Repeats() })
}

// copies reports whether rows of a batch that have the same raster are done together: windows that share chunks with
// others do so by Engine.tiles. named is as of sharesChunks.
func (d *dataset) copies(named bool) bool {
	return d.repeats() && !d.pooled() && !d.sharesChunks(named)
}

// follows reports whether a unit is done with another one, whose raster it has.
func (u workUnit) follows() bool {
	s := u.p.same[u]
	return s != nil && s.units[0] != u
}

// pixels decodes a unit, or copies its pixels from one before it.
func (s *sameRaster) pixels(r *pixels.Reader, u workUnit, row int64) error {
	if s.twins == nil {
		s.begin(r)
	}
	k := slices.Index(s.units, u)
	if twin := s.twins[k]; twin >= 0 && s.done[twin] {
		u.copy(s.units[twin].row)
		s.done[k] = true
		return nil
	}
	err := u.windows(r, row, s.order(k))
	s.done[k] = err == nil
	return err
}

// order returns the place of the first window of unit k in Reader.ForViews, 0 if it shares no chunks.
func (s *sameRaster) order(k int) int64 {
	if s.ends == nil {
		return 0
	}
	views := len(s.units[k].p.set(s.units[k].row).ofViews())
	return viewOrder(k * views)
}

// begin compares the windows of all units. If some differ, it announces the chunks that they need.
func (s *sameRaster) begin(r *pixels.Reader) {
	s.done = make([]bool, len(s.units))
	shares := s.units[0].p.set(s.units[0].row).views != nil
	var all [][]turnedWindow
	for k, u := range s.units {
		windows, twin := u.turnedWindows(), -1
		if all = append(all, windows); windows != nil {
			twin = slices.IndexFunc(all, func(other []turnedWindow) bool { return slices.Equal(other, windows) })
		}
		s.twins = append(s.twins, twin)
		shares = shares || k > 0 && twin == k
	}
	if !shares {
		return
	}
	s.ends = []func(){}
	for k, u := range s.units {
		if s.twins[k] == k {
			s.ends = append(s.ends, u.announce(r, s.order(k)))
		}
	}
}

// end ends the work on the units.
func (s *sameRaster) end() {
	for _, end := range s.ends {
		end()
	}
}

// turnedWindows returns the windows of a unit, nil if one is not known.
func (u workUnit) turnedWindows() (out []turnedWindow) {
	e, ctx, draw := u.p.engine, u.p.ctx, &u.p.draws[u.row]
	d := u.p.set(u.row)
	row := e.rowRead(d, draw, u.field, u.step)
	for i, view := range d.ofViews() {
		drawn := e.plan.View(draw, i)
		asset, err := d.table.Fields[d.column(u.field, u.step)].Asset(ctx, row)
		if err != nil {
			return nil
		}
		box, err := e.windowOf(ctx, view, &drawn, u.field, row, asset)
		if err != nil {
			return nil
		}
		out = append(out, turnedWindow{box, drawn.Transform})
	}
	return out
}

// copy copies the pixels of a unit, and what is known of them, from another row.
func (u workUnit) copy(from int) {
	p := u.p
	set := p.set(u.row)
	for i, view := range set.ofViews() {
		u.view = i
		number := view.layoutOf(u.field)
		masked := !p.layout.rasters[number].native || p.masked[number].Load() // else no row has a mask
		p.sink(u, nil, shuffle.Box{}, masked).CopyFrom(from, p.layout.rasters[number].dtype.Size())
	}
	if p.inFiles != nil && p.inFiles[u.field] != nil {
		n := p.group.lead().rasters[u.field].TimeSteps
		steps := p.inFiles[u.field]
		copy(steps[u.row*n:][:n], steps[from*n:][:n])
	}
}
