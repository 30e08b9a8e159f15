package loader

import (
	"context"

	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// Explain describes the rows of a ticket: the assets, windows and chunks of each, and with weights the probability of
// the sample, without reading a pixel. Faults of a sample are in its row; its substitute is ExplainDraw of
// Engine.Substitute. Explain returns only errors that no bad-sample policy covers.
func (e *Engine) Explain(ctx context.Context, t steps.Ticket) ([]dryrun.Row, error) {
	if _, err := e.check(t); err != nil {
		return nil, err
	}
	var chances []float64
	if t.Weights != nil {
		err := e.weighed.use(func() (err error) {
			t.Samples, chances, err = e.chances(ctx, t)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	rows := make([]dryrun.Row, t.Rows())
	for place := range rows {
		rows[place] = dryrun.Row{Row: place, Position: t.Position(place, e.samples)}
		if rows[place].Position < 0 {
			continue
		}
		row, err := e.ExplainDraw(ctx, e.plan.Draw(t, place))
		if err != nil {
			return nil, err
		}
		row.Row, row.Position = place, rows[place].Position
		if chances != nil {
			row.Probability = chances[place]
		}
		rows[place] = row
	}
	return rows, nil
}

// ExplainDraw is Explain for one sample, such as a substitute (Substitute). Faults of the sample are in
// the result; it returns only errors that no bad-sample policy covers.
func (e *Engine) ExplainDraw(ctx context.Context, draw shuffle.Draw) (dryrun.Row, error) {
	set := e.set(&draw)
	row := dryrun.Row{Draw: draw, Source: set.name, Dataset: set.source.Source}
	var err error
	if row.ID, err = set.table.ID(ctx, draw.Row); err != nil {
		_, err = row.Note(err)
		return row, err
	}
	// It goes on in the order of a run, which reads all fields of a sample even if one is bad, but stops at
	// the first fault of a substitute. Otherwise the forecast would count other requests.
	if stop, err := e.explainRasters(ctx, set, &draw, &row); stop {
		return row, err
	}
	if err = e.explainColumns(ctx, set, &draw); err != nil {
		_, err = row.Note(err)
	}
	return row, err
}

// explainColumns checks the columns of a draw, in the order of a run.
func (e *Engine) explainColumns(ctx context.Context, d *dataset, draw *shuffle.Draw) error {
	pending := &Pending{engine: e, group: d.group, ctx: ctx, batch: &batch.Batch{Rows: 1}}
	for i := range d.values {
		if err := e.valueColumn(pending, i).fill(nil, d, draw, 0); err != nil {
			return err
		}
	}
	if len(d.vectors) > 0 {
		return e.explainVectors(ctx, d, draw)
	}
	return nil
}

// explainVectors finds out whether shapes can be drawn into the window of a draw. Their reads are not counted: one file
// is open, and most of the shapes that a run reads are soon in memory. A file for each image is not opened.
func (e *Engine) explainVectors(ctx context.Context, d *dataset, draw *shuffle.Draw) error {
	asset, _, err := e.firstRaster(ctx, d, draw)
	if err != nil {
		return err
	}
	for _, v := range d.vectors {
		if err := v.Placeable(ctx, draw.Row, &asset); err != nil {
			return asset.Fault(err)
		}
	}
	return nil
}

// explainRasters adds the reads of the rasters of a draw.
func (e *Engine) explainRasters(ctx context.Context, d *dataset, draw *shuffle.Draw,
	r *dryrun.Row) (stop bool, _ error) {
	for i, step := range d.images() {
		row := e.rowRead(d, draw, i, step)
		for number, view := range d.ofViews() {
			drawn := e.plan.View(draw, number)
			if d.ground != nil {
				row = e.rowRead(view, &drawn, i, step)
			}
			if row < 0 {
				r.Assets = append(r.Assets, dryrun.Asset{Field: d.rasters[i].Name, Step: step, View: number, Row: row})
				continue
			}
			read, err := e.explainWindow(ctx, view, &drawn, i, step, row)
			if err == nil {
				r.Assets = append(r.Assets, read...)
				continue
			}
			if stop, err := r.Note(err); stop {
				return true, err
			}
			break
		}
	}
	return false, nil
}

// Sources returns the sources, in the order of their numbers in the tensor SourceColumn of a batch.
func (e *Engine) Sources() []batch.SourceInfo {
	out := make([]batch.SourceInfo, len(e.sets))
	for i, d := range e.sets {
		out[i] = batch.SourceInfo{Name: d.name, Source: d.source.Source, Rows: d.table.N, Fields: d.group.infos}
	}
	for i, d := range e.leaves {
		s := &out[d.number]
		s.Datasets = append(s.Datasets, i)
		s.Samples += e.plan.DatasetLen(i)
	}
	return out
}
