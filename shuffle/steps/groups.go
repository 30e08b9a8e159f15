package steps

import (
	"fmt"
	"math/bits"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// Groups gives tickets whose windows share decoded tiles one number, so one of several servers
// answers them all. One dataset leads: a group is the tickets that begin in one of its pools,
// estimated without the mixture's word. Groups serve speed only: any server can answer any ticket.
type Groups struct {
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
	if g.Dataset < 0 || g.Pool < 1 || g.Samples < 1 || len(g.Levels) > MaxDepth {
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

// Of returns the group of a ticket, a number of at least 0. Python computes the same.
func (g *Groups) Of(t Ticket) int64 {
	epoch, pool, _ := g.place(t)
	return int64(Pool{g.Dataset, epoch, int64(pool)}.Key() >> 1)
}

// Turn returns the number of a ticket's group in the order of the run, modulo 2^64. Python computes
// the same.
func (g *Groups) Turn(t Ticket) uint64 {
	epoch, pool, n := g.place(t)
	return epoch*((n-1)/uint64(g.Pool)+1) + pool
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
