package batch

import (
	"fmt"

	"github.com/chaski-eo/chaski/fault"
)

// BadLimit bounds the bad rows of an epoch. nil is no bound.
type BadLimit struct {
	Count *int64   `json:"count"` // rows
	Rate  *float64 `json:"rate"`  // share of the rows of the loader, from 0 to 1
}

// BadCounter counts the bad rows that one loader meets in an epoch, for the spec's BadLimit.
//
// A state has no count: it is the same on every rank and for any world size, but a rank knows only its own bad rows.
// So batches are the same after a resume and for any world size, but the step at which a limit ends a run is not.
type BadCounter struct {
	limit       int64 // -1 without a bound
	rank, world int
	hasEpoch    bool
	epoch       uint64
	count       int64
	from        int64 // position of the first batch that was counted in the epoch
	first       int64 // batches that begin before this position were counted
}

// NewBadCounter returns the counter of one rank of world loaders, which gets so many rows of an epoch. Each loader
// counts its own rows: the rate applies to these, the count is the same for every loader.
func NewBadCounter(limit *BadLimit, rows int64, rank, world int) BadCounter {
	counter := BadCounter{limit: -1, rank: rank, world: world}
	if limit == nil {
		return counter
	}
	if limit.Count != nil {
		counter.limit = *limit.Count
	}
	if limit.Rate != nil {
		total := float64(rows)
		bound := int64(*limit.Rate * total)
		if float64(bound+1) <= total && float64(bound+1)/total <= *limit.Rate {
			bound++ // the product was rounded down: 0.29 of 100 is 29
		}
		if counter.limit < 0 || bound < counter.limit {
			counter.limit = bound
		}
	}
	return counter
}

// Limit returns how many bad rows a loader may meet in an epoch, or -1 if there is no limit.
func (c *BadCounter) Limit() int64 { return c.limit }

// Note counts the bad rows of a batch, the next one of the loader. It returns an error of kind limit if the batch's
// epoch has more than allowed. Bad rows before a resume do not count. A batch that is passed again is counted once.
func (c *BadCounter) Note(b *Batch) error {
	if c.limit < 0 {
		return nil
	}
	if b.Epoch != c.epoch || !c.hasEpoch {
		c.hasEpoch, c.epoch, c.count, c.from, c.first = true, b.Epoch, 0, b.First, b.First
	}
	if b.First >= c.first {
		c.first = b.First + 1
		for i := range b.Bad { // in the order of the rows; a row of a sequence may have several bad steps
			if i == 0 || b.Bad[i].Row != b.Bad[i-1].Row {
				c.count++
			}
		}
	}
	if c.count <= c.limit || len(b.Bad) == 0 {
		return nil
	}
	last := b.Bad[len(b.Bad)-1]
	name := ""
	if c.world > 1 {
		name = fmt.Sprintf(" among the rows of rank %d of %d", c.rank, c.world)
	}
	if c.from > 0 {
		name += fmt.Sprintf(" since position %d, where this loader began", c.from)
	}
	return fault.New(fault.Limit, "bad samples", "%d in epoch %d%s, over the limit of %d; the last one, at position "+
		"%d: %v", c.count, b.Epoch, name, c.limit, last.Position, last.Err)
}
