// Package steps says what each step of a run asks for, and how far a run has come: how an epoch is cut into batches,
// the tickets of ranks, the state to resume from, and the groups of tickets that share decoded tiles. It knows no
// sample: package shuffle says which one stands at a position. docs/order.md defines every function here exactly.
package steps

import "fmt"

// Count returns the number of steps of an epoch of n positions in global batches of g. The last batch
// may be short; dropLast leaves it out.
func Count(n int64, g int, dropLast bool) int64 {
	if dropLast {
		return n / int64(g)
	}
	return (n + int64(g) - 1) / int64(g)
}

// Values of Cut.Last.
const (
	LastShort = "short"
	LastDrop  = "drop"
	LastPad   = "pad"
)

// Cut says how the positions of an epoch become the global batches of its steps.
type Cut struct {
	BatchSize int    `json:"batch_size"`
	Last      string `json:"last"` // what becomes of the last batch if it is short; "" is LastShort
}

// Drops reports whether an epoch ends with its last whole batch.
func (c Cut) Drops() bool { return c.Last == LastDrop }

// Ticket returns the ticket of rank of world for a step of an epoch of n positions.
func (c Cut) Ticket(epoch uint64, step, n int64, rank, world int) Ticket {
	t := StepTicket(epoch, step, c.BatchSize, rank, world)
	if c.Last == LastPad {
		return t
	}
	return t.WithoutPadding(n)
}

// LocalRows returns the rows that every one of world ranks gets of a global batch of g, padding included:
// ceil(g/world), the same for all, so ranks agree on shapes.
func LocalRows(g, world int) int {
	if g <= 0 {
		return 0
	}
	// (g+world-1)/world would overflow.
	return (g-1)/world + 1
}

// CheckRank returns an error if rank is not one of world ranks.
func CheckRank(rank, world int) error {
	switch {
	case world < 1:
		return fmt.Errorf("world is %d: it must be at least 1", world)
	case rank < 0 || rank >= world:
		return fmt.Errorf("rank is %d, but world is %d: ranks are 0 to %d", rank, world, world-1)
	}
	return nil
}

// RankRows returns how many of the n positions of an epoch one rank of world gets, in global batches
// of g, without padding. If world does not divide g, the ranks get different numbers.
func RankRows(n int64, g, rank, world int, dropLast bool) int64 {
	// share counts the rank's rows in a batch of m: rank, rank+world, ... below m.
	share := func(m int64) int64 { return (max(m-int64(rank), 0) + int64(world) - 1) / int64(world) }
	rows := n / int64(g) * share(int64(g))
	if !dropLast {
		rows += share(n % int64(g))
	}
	return rows
}

// Ticket asks for rows of a run of positions: rows RowStart, RowStart+RowStride, ... of the Count
// positions from First of an epoch. Rank r of W asks for (r, W).
type Ticket struct {
	Epoch     uint64 `json:"epoch"`
	First     int64  `json:"first"`
	Count     int    `json:"count"`
	RowStart  int    `json:"row_start"`
	RowStride int    `json:"row_stride"`
	// Positions, if there are any, name the position of each row, in place of a run: First, Count, RowStart and
	// RowStride are then 0.
	Positions []int64 `json:"positions,omitempty"`
	// Unpadded asks for the rows alone that lie within Count, and for one row of padding if there is no such
	// row.
	Unpadded bool `json:"unpadded,omitempty"`
	// Corners, if there are any, are y and x of the random window at each of Positions, in place of a drawn one.
	Corners []uint32 `json:"corners,omitempty"`
	// Weights, if there are any, draw the samples; nil: they come in the order of the epoch.
	Weights *Weights `json:"weights,omitempty"`
	// Samples, if there are any, are the sample of each row, drawn by Weights.
	Samples []int64 `json:"-"`
}

// Weights names a file with a weight for each sample.
type Weights struct {
	Path string `json:"path"`
	Hash string `json:"hash"` // in hexadecimal digits (docs/order.md)
	Once bool   `json:"once,omitempty"`
}

// StepTicket returns the ticket of rank of world for step s of an epoch of n positions.
func StepTicket(epoch uint64, s int64, g, rank, world int) Ticket {
	return Ticket{Epoch: epoch, First: s * int64(g), Count: g, RowStart: rank, RowStride: world}
}

// WithoutPadding returns the ticket with the rows alone that exist in an epoch of n positions. A rank without any has
// one row of padding, so it takes part in the step.
func (t Ticket) WithoutPadding(n int64) Ticket {
	t.Count, t.Unpadded = int(min(int64(t.Count), n-t.First)), true
	return t
}

// Rows returns the number of rows of the ticket's batch, padding included.
func (t Ticket) Rows() int {
	switch {
	case len(t.Positions) > 0:
		return len(t.Positions)
	case t.Unpadded:
		return max(LocalRows(t.Count-t.RowStart, t.RowStride), 1)
	}
	return LocalRows(t.Count, t.RowStride)
}

// Position returns the position of the batch's row k in an epoch of n positions, or -1 for padding: a
// row past the global batch or past the end of the epoch.
func (t Ticket) Position(k int, n int64) int64 {
	if len(t.Positions) > 0 {
		return t.Positions[k]
	}
	i := t.RowStart + k*t.RowStride
	p := t.First + int64(i)
	if i >= t.Count || p >= n {
		return -1
	}
	return p
}
