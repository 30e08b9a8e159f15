package loader

import (
	"context"

	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/store/catalog"
)

// pageWork counts the pages that a dry run reads for rasters in cells of tables.
type pageWork struct {
	counters  map[*dataset]*catalog.PageCounter
	announced map[int64][]func() // of steps that a run has started, what ends their announcements
	next      int64              // the step that is announced next
}

// open makes the counters. The context that it returns reads no cells that they count.
func (w *pageWork) open(ctx context.Context, sets []*dataset) (context.Context, error) {
	w.counters, w.announced = map[*dataset]*catalog.PageCounter{}, map[int64][]func(){}
	dry := ctx
	for _, set := range sets {
		counter, err := set.table.Pages(ctx)
		if err != nil {
			return nil, err
		}
		if counter != nil {
			w.counters[set], dry = counter, counter.With(dry)
		}
	}
	return dry, nil
}

// begin begins a step. It announces the steps that a loader, which prepares so many batches ahead, has started by then.
func (w *pageWork) begin(e *Engine, o *dryrun.Options, step int64, ahead int) {
	if len(w.counters) == 0 {
		return
	}
	end := min(step+int64(ahead), e.Steps())
	for w.next = max(w.next, step); w.next < end; w.next++ {
		ticket := e.spec.Cut().Ticket(o.Epoch, w.next, e.samples, o.Rank, o.World)
		var overs []func()
		e.eachRaster(ticket, func(d *dataset, column int, row int64) {
			if counter := w.counters[d]; counter != nil {
				overs = append(overs, counter.Announce(column, row))
			}
		})
		w.announced[w.next] = overs
	}
}

// end ends the announcement of a step.
func (w *pageWork) end(step int64) {
	for _, end := range w.announced[step] {
		end()
	}
	delete(w.announced, step)
}
