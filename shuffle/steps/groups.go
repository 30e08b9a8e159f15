package steps

import (
	"fmt"
	"math/bits"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// Groups gives tickets whose samples share decoded tiles or read blocks one number, so one of several servers answers
// them all. Groups serve speed only: any server can answer any ticket.
type Groups struct {
	// Lanes, if it is above 0, is the number of lanes of blocks (docs/order.md, Blocks): a group is the tickets of a
	// rank. Otherwise one dataset leads: a group is the tickets that begin in one of its pools, estimated without the
	// mixture's word.
	Lanes   int64
	Dataset int   // number of the dataset that leads
	Pool    int64 // positions of one of its pools
	// Samples is N, the positions of an epoch.
	Samples int64
	// Levels lead from the outermost mixture to the dataset. They are empty without a mixture.
	Levels []Level
}

// Level is a source of a mixture.
type Level struct {
	Drawn   int64 // draws from the source in an epoch of the mixture
	Samples int64 // positions of an epoch of the source itself
}

// Check validates groups that came from another process.
func (g *Groups) Check() error {
	if g.Lanes < 0 || g.Dataset < 0 || g.Lanes == 0 && g.Pool < 1 || g.Samples < 1 || len(g.Levels) > MaxDepth {
		return fmt.Errorf("groups of pools of %d positions of dataset %d, %d levels deep, of %d samples",
			g.Pool, g.Dataset, len(g.Levels), g.Samples)
	}
	positions := g.Samples
	for _, level := range g.Levels {
		if level.Drawn < 0 || level.Drawn > positions || level.Samples < 1 {
			return fmt.Errorf("groups: %d draws of %d in an epoch of %d", level.Drawn, level.Samples, positions)
		}
		positions = level.Samples
	}
	return nil
}

// Of returns the group of a ticket that one of some servers will answer, a number of at least 0, and the number of the
// group in the order of the run, modulo 2^64. The group is -1 if the ticket has none. A ticket of blocks has none if
// there are fewer ranks than servers, because some servers would idle, or if ranks share lanes.
func (g *Groups) Of(t Ticket, servers int) (group int64, turn uint64) {
	if g == nil {
		return -1, 0
	}
	if g.Lanes > 0 {
		if t.RowStride < max(servers, 1) || g.Lanes%int64(t.RowStride) != 0 {
			return -1, 0
		}
		return int64(t.RowStart), uint64(t.RowStart)
	}
	epoch, pool, n := g.place(t)
	return int64(Pool{g.Dataset, epoch, int64(pool)}.Key() >> 1), epoch*((n-1)/uint64(g.Pool)+1) + pool
}

// place returns the epoch and the pool of the leading dataset in which a ticket begins, and the
// positions of that epoch.
func (g *Groups) place(t Ticket) (epoch, pool, of uint64) {
	epoch, p, n := t.Epoch, uint64(min(max(t.First, 0), g.Samples)), uint64(g.Samples)
	for _, level := range g.Levels {
		hi, lo := bits.Mul64(p, uint64(level.Drawn))
		before, _ := bits.Div64(hi, lo, n) // p <= n and level.Drawn <= n, so it is at most level.Drawn
		draw := epoch*uint64(level.Drawn) + before
		n = uint64(level.Samples)
		epoch, p = draw/n, draw%n
	}
	return epoch, p / uint64(g.Pool), n
}

// MaxDepth bounds mixtures in mixtures, because a spec is user input and add is recursive.
const MaxDepth = 16

// Pool names windows that are shuffled together, and so share decoded tiles.
type Pool struct {
	Dataset int    `json:"dataset"`
	Epoch   uint64 `json:"epoch"` // the dataset's
	Index   int64  `json:"index"`
}

// Key returns a uniform word of the pool, for choosing a server by rendezvous hashing.
func (p Pool) Key() uint64 { return splitmix.Hash(0, uint64(p.Dataset), p.Epoch, uint64(p.Index)) }
