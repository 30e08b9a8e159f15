package resources

import (
	"context"

	"github.com/chaski-eo/chaski/internal/budget"
)

// Budget bounds the memory of everything that has it among its Options: batches, reads, openings, tables. Engines
// and reads of one process share one. A nil Budget bounds nothing.
type Budget = budget.Budget

// NewBudget returns a budget of n bytes. What does not fit waits for up to a minute, and is then an error of kind
// limit; what could never fit is one at once. Clients (Turn.Client) take turns to be given what becomes free.
func NewBudget(n int64) *Budget {
	return budget.New(n, func(ctx context.Context) any { return TurnOf(ctx).Client })
}
