package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// epoch is the deliveries of an epoch that count.
type epoch struct {
	*head
	number uint64
	starts []*start
	edges  []edge
	begins int64 // the first step that the ledger is about
	mayEnd bool  // in the middle, as the run does
	budget *room

	byWeight int64 // samples that weights drew
}

// edge is where a rank of a start begins or ends to be given steps.
type edge struct {
	step  int64
	start int
	rank  int64
	more  int
}

// piece is a run of steps in which the same ranks of the same starts were given batches.
type piece struct {
	from, to   int64
	deliveries []delivery // by start and rank, until the next piece
}

// delivery is how often a rank of a start was given each step of a piece.
type delivery struct {
	start int
	rank  int64
	times int64
}

// pieces cuts the steps of the epoch where deliveries begin or end. The edges are sorted.
func (e *epoch) pieces(yield func(piece) bool) {
	var given []delivery
	start := int64(0)
	upTo := func(step int64) bool {
		if step == start {
			return true
		}
		made := piece{start, step, given}
		start = step
		e.budget.looks -= int64(len(given))
		return e.budget.looks >= 0 && yield(made)
	}
	for _, change := range e.edges {
		if !upTo(change.step) {
			return
		}
		if change.more == 0 {
			continue
		}
		e.budget.looks -= int64(len(given)) / 64 // an entry in the middle moves the others
		index, found := slices.BinarySearchFunc(given, delivery{change.start, change.rank, 0}, delivery.compare)
		if !found {
			given = slices.Insert(given, index, delivery{change.start, change.rank, 0})
		}
		if given[index].times += int64(change.more); given[index].times == 0 {
			given = slices.Delete(given, index, index+1)
		}
	}
	upTo(e.Steps)
}

// compare orders deliveries by start and rank.
func (d delivery) compare(o delivery) int {
	return cmp.Or(cmp.Compare(d.start, o.start), cmp.Compare(d.rank, o.rank))
}

// last returns the deliveries of the last start of a piece, which is the one that counts, and its world.
func (p *piece) last(e *epoch) (given []delivery, world *head) {
	if len(p.deliveries) == 0 {
		return nil, e.head
	}
	number := p.deliveries[len(p.deliveries)-1].start
	first := slices.IndexFunc(p.deliveries, func(d delivery) bool { return d.start == number })
	return p.deliveries[first:], e.starts[number].lives[0].head
}

// isComplete reports whether all ranks with rows were given the steps of a piece.
func (p *piece) isComplete(e *epoch) bool {
	given, world := p.last(e)
	rows := int64(0)
	for _, d := range given {
		rows += rowsOf(world, d.rank, p.from, p.to)
	}
	return rows == e.positions(p.from, p.to)
}

// positions returns how many positions steps have.
func (e *epoch) positions(from, to int64) int64 {
	return min(to*e.BatchSize, e.Samples) - from*e.BatchSize
}

// sweep finds what was delivered of the epoch, and adds the exceptions to a run.
func (e *epoch) sweep(run *Run) Epoch {
	told := Epoch{Epoch: e.number, Begins: e.begins, ByWeight: e.byWeight}
	// In the last step, which may be short, not all ranks have rows.
	e.edges = append(e.edges, edge{step: e.begins}, edge{step: e.Steps - 1})
	slices.SortFunc(e.edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.start, b.start), cmp.Compare(a.rank, b.rank))
	})
	missing, twice := run.Missing, run.Twice
	ends := e.Steps
	if e.mayEnd {
		ends = 0
		for p := range e.pieces {
			if p.isComplete(e) {
				ends = p.to
			}
		}
	}
	told.Unfinished = ends < e.Steps
	for p := range e.pieces {
		if p.isComplete(e) {
			told.Steps += p.to - p.from
		}
		told.Samples += e.piece(&p, run, p.from >= ends || p.to <= e.begins)
	}
	told.Delivered = !told.Unfinished && told.Begins == 0 && run.Missing == missing && run.Twice == twice
	told.Complete = told.Delivered && told.ByWeight == 0 && run.Dropped == 0 && run.Counted == "samples"
	return told
}

// piece adds the exceptions of a piece to a run, and returns how many samples were delivered. Outside of what the
// ledger is about none is missing.
func (e *epoch) piece(p *piece, run *Run, outside bool) (samples int64) {
	given, world := p.last(e)
	add := func(what string, h *head, samples int64, ranks ranges) {
		if samples > 0 {
			run.add(Exception{What: what, Epoch: e.number, First: p.from, Last: p.to - 1, Ranks: ranks.String(),
				World: h.World, Samples: samples})
		}
	}
	var absent ranges
	next := int64(0)
	for _, d := range given {
		samples += rowsOf(world, d.rank, p.from, p.to)
		absent.add(next, d.rank)
		next = d.rank + 1
	}
	if lost := e.positions(p.from, p.to) - samples; lost > 0 && !outside {
		absent.add(next, min(world.World, e.BatchSize)) // higher ranks have no rows
		if len(given) == 0 {
			absent, world = nil, &head{}
		}
		run.Missing += lost
		add("missing", world, lost, absent)
	}
	for i := 0; i < len(p.deliveries); {
		number, ranks, again := p.deliveries[i].start, ranges(nil), int64(0)
		known := e.starts[number].lives[0].head
		counts := len(given) == len(p.deliveries)-i // the deliveries of the last start, whose first ones count
		for ; i < len(p.deliveries) && p.deliveries[i].start == number; i++ {
			times := p.deliveries[i].times
			if counts {
				times--
			}
			if rows := times * rowsOf(known, p.deliveries[i].rank, p.from, p.to); rows > 0 {
				again += rows
				ranks.add(p.deliveries[i].rank, p.deliveries[i].rank+1)
			}
		}
		run.Twice += again
		add("twice", known, again, ranks)
	}
	return samples
}

// ranges are numbers in rising order: from the first of each pair up to the second, which is not among them.
type ranges [][2]int64

// add adds the numbers [from, to), which are above all others.
func (r *ranges) add(from, to int64) {
	if n := len(*r); n > 0 && from < to && (*r)[n-1][1] == from {
		(*r)[n-1][1] = to
	} else if from < to {
		*r = append(*r, [2]int64{from, to})
	}
}

// maxRanges is how many ranges are written out.
const maxRanges = 64

// String returns "0, 3-5".
func (r ranges) String() string {
	var parts []string
	for i, pair := range r {
		if i == maxRanges {
			parts = append(parts, fmt.Sprintf("and %d more", len(r)-i))
			break
		}
		part := fmt.Sprint(pair[0])
		if pair[1]-pair[0] > 1 {
			part += fmt.Sprintf("-%d", pair[1]-1)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}
