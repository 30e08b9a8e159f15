package resources

import "github.com/chaski-eo/chaski/internal/budget"

// Budget bounds the memory of everything that has it among its Options: batches, reads, openings, tables. Engines
// and reads of one process share one. A nil Budget bounds nothing.
type Budget = budget.Budget

// NewBudget returns a budget of n bytes. A request that does not fit waits for up to a minute, and then fails
// with kind limit; one that can never fit fails at once.
func NewBudget(n int64) *Budget { return budget.New(n) }
