package loader

import (
	"math"
	"slices"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog"
)

// windowAsset returns the window of a draw as an asset that lies where it lies and has no pixels.
func (d *dataset) windowAsset(p *shuffle.Plan, draw *shuffle.Draw) catalog.Asset {
	place := p.Place(draw)
	side, _ := d.sampler.Side()
	return catalog.Asset{
		URI: d.source.Source, Place: d.ground.Place(place), Index: &chunk.Index{Height: side, Width: side},
	}
}

// sceneRows returns the rows of the scenes that a field of a draw's window takes pixels from, the preferred ones
// first: in a sequence the rows of a step; padding has no rows. With the mosaic "none" it is the first scene of the
// field's datasets that has a pixel of the window, or no row if that one lacks the field.
func (d *dataset) sceneRows(p *shuffle.Plan, draw *shuffle.Draw, f *pixels.Raster, step int) []int64 {
	var all []int64
	switch none := d.sampler.Mosaic == spec.MosaicNone; {
	case none && d.steps == 0 && d.table.Joined == nil:
		all = []int64{draw.Row}
	case none:
		all = d.ground.WithPixels(p.Place(draw), d.all(p, draw, f, step))
		all = all[:min(len(all), 1)]
	default:
		all = d.all(p, draw, f, step)
	}
	if !f.MayLack() {
		return all
	}
	return slices.DeleteFunc(all, func(row int64) bool { return d.table.Lacks(f.TableColumn, row) })
}

// all returns the scenes that sceneRows chooses from: in a sequence the scenes of a step.
func (d *dataset) all(p *shuffle.Plan, draw *shuffle.Draw, f *pixels.Raster, step int) []int64 {
	place := p.Place(draw)
	if f.Steps == 0 {
		return d.of(f, d.ground.Rows(nil, place))
	}
	first := *draw // whose steps its views have
	first.View = 0
	steps := d.view(0).ground.Steps(p.Place(&first))
	if step >= len(steps) {
		return nil
	}
	if f.Match == "" && draw.View > 0 {
		return d.of(f, d.ground.At(place, &steps[step]))
	}
	if f.Match == "" {
		return d.of(f, steps[step].Rows)
	}
	has := func(row int64) bool { return !d.table.Lacks(f.TableColumn, row) }
	if f.Match == spec.MatchStep {
		return d.ground.SameStep(place, &steps[step], has)
	}
	limit := int64(math.MaxInt64)
	if f.MatchDays > 0 {
		limit = int64(f.MatchDays * day)
	}
	return d.ground.Nearest(place, &steps[step], has, limit)
}

// day is a day in microseconds, as scenes.Scene.Time counts.
const day = 24 * 60 * 60 * 1e6

// of returns the rows among some in which a field has rasters.
func (d *dataset) of(f *pixels.Raster, seen []int64) []int64 {
	if d.table.Joined == nil {
		return seen
	}
	var places []int64
	for _, row := range seen {
		if k, _ := d.table.Joined.Dataset(row); d.holds(f, k) {
			places = append(places, row)
		}
	}
	return places
}

// holds reports whether a field has rasters in a dataset.
func (d *dataset) holds(f *pixels.Raster, dataset int) bool {
	j := d.table.Joined
	return j == nil || j.Has(f.TableColumn, dataset)
}

// leads returns the dataset that a row belongs to, and the column of the table with the raster that has the place of
// the scene, or -1 if all fields of the dataset may lack.
func (d *dataset) leads(row int64) (dataset, column int) {
	joined := d.table.Joined
	if joined == nil {
		return 0, d.rasters[0].TableColumn // which compileFields has chosen
	}
	k, _ := joined.Dataset(row)
	for _, r := range d.rasters {
		if joined.Has(r.TableColumn, k) && !r.MayLack() {
			return k, r.TableColumn
		}
	}
	return k, -1
}

// rowRead returns the row of the table whose raster of a field is read for a step of a draw, on the ground the row of
// the first scene that is read, or -1 for padding.
func (e *Engine) rowRead(d *dataset, draw *shuffle.Draw, field, step int) int64 {
	if d.ground == nil {
		row := e.rowOf(draw, step)
		if d.files.padding(field, step, row) || row >= 0 && d.table.Lacks(d.rasters[field].TableColumn, row) {
			return -1
		}
		return row
	}
	f := d.rasters[field]
	if f.Steps == 0 {
		return draw.Row
	}
	if scenes := d.sceneRows(e.plan, draw, f, step); len(scenes) > 0 {
		return scenes[0]
	}
	return -1
}

// eachRaster visits the rasters that a ticket reads, but for windows on the ground: their columns and rows of a table.
func (e *Engine) eachRaster(t steps.Ticket, visit func(d *dataset, column int, row int64)) {
	for k := range t.Rows() {
		if t.Position(k, e.samples) < 0 {
			continue
		}
		draw := e.plan.Draw(t, k)
		set := e.set(&draw)
		if set.ground != nil {
			continue
		}
		for field, step := range set.images() {
			if row := e.rowRead(set, &draw, field, step); row >= 0 {
				visit(set, set.column(field, step), row)
			}
		}
	}
}
