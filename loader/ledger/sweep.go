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
	from, to int64
	given    []delivery // by start and rank
}

// delivery is how often a rank of a start was given each step of a piece.
type delivery struct {
	start int
	rank  int64
	times int64
}

// pieces cuts the steps of the epoch where deliveries begin or end.
func (e *epoch) pieces(yield func(piece) bool) {
	type who struct {
		start int
		rank  int64
	}
	// In the last step, which may be short, not all ranks have rows.
	e.edges = append(e.edges, edge{step: e.begins}, edge{step: e.Steps - 1})
	slices.SortFunc(e.edges, func(a, b edge) int { return cmp.Compare(a.step, b.step) })
	active, from := map[who]int64{}, int64(0)
	upTo := func(step int64) bool {
		if step == from {
			return true
		}
		made := piece{from: from, to: step}
		for w, times := range active {
			made.given = append(made.given, delivery{w.start, w.rank, times})
		}
		slices.SortFunc(made.given, func(a, b delivery) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.rank, b.rank))
		})
		from = step
		return yield(made)
	}
	for _, change := range e.edges {
		if !upTo(change.step) {
			return
		}
		w := who{change.start, change.rank}
		if active[w] += int64(change.more); active[w] == 0 {
			delete(active, w)
		}
	}
	upTo(e.Steps)
}

// last returns the deliveries of the last start of a piece, which is the one that counts, and its world.
func (p *piece) last(e *epoch) (given []delivery, world *head) {
	if len(p.given) == 0 {
		return nil, e.head
	}
	number := p.given[len(p.given)-1].start
	first := slices.IndexFunc(p.given, func(d delivery) bool { return d.start == number })
	return p.given[first:], e.starts[number].lives[0].head
}

// whole reports whether all ranks with rows were given the steps of a piece.
func (p *piece) whole(e *epoch) bool {
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
	told := Epoch{Epoch: e.number, Begins: e.begins}
	pieces := slices.Collect(e.pieces)
	missing, twice := run.Missing, run.Twice
	ends := len(pieces)
	for e.mayEnd && ends > 0 && !pieces[ends-1].whole(e) {
		ends--
	}
	told.Unfinished = ends < len(pieces)
	for i, p := range pieces {
		if whole := p.whole(e); whole {
			told.Steps += p.to - p.from
		}
		told.Samples += e.piece(&p, run, i >= ends || p.to <= e.begins)
	}
	told.Complete = !told.Unfinished && told.Begins == 0 && run.Missing == missing && run.Twice == twice
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
	for i := 0; i < len(p.given); {
		number, ranks, again := p.given[i].start, ranges(nil), int64(0)
		known := e.starts[number].lives[0].head
		counts := len(given) == len(p.given)-i // the deliveries of the last start, whose first ones count
		for ; i < len(p.given) && p.given[i].start == number; i++ {
			times := p.given[i].times
			if counts {
				times--
			}
			if rows := times * rowsOf(known, p.given[i].rank, p.from, p.to); rows > 0 {
				again += rows
				ranks.add(p.given[i].rank, p.given[i].rank+1)
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

// String returns "0, 3-5".
func (r ranges) String() string {
	var parts []string
	for _, pair := range r {
		part := fmt.Sprint(pair[0])
		if pair[1]-pair[0] > 1 {
			part += fmt.Sprintf("-%d", pair[1]-1)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}
