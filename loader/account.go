package loader

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
)

// openingBytes is charged for every opening before it reads anything: the spec as text and as values, which is at most
// 1 MiB on the wire, and the first reads of headers.
const openingBytes = 4 << 20

// cachesShare bounds the caches of one engine: 1/cachesShare of the budget, so 16 engines take at most half of it.
// A server may have more engines open if they take less, and closes unused ones for others.
const cachesShare = 32

// openAccount opens the account of an engine, which also pays for its caches. It lowers o.CacheBytes as far as the
// budget requires, since each dataset of a mixture has caches of its own.
func openAccount(ctx context.Context, o *Options, s *Spec) (*budget.Account, error) {
	total := o.Budget.Limit()
	if total == 0 {
		return nil, nil
	}
	root := s.Root()
	n := int64(datasets(&root))
	o.CacheBytes = max(1, min(o.CacheBytes, total/cachesShare/n))
	account, err := o.Budget.Open(ctx, openingBytes+n*o.CacheBytes)
	return account, fault.WithFile(err, s.Source)
}

// datasets returns how many datasets a source has: one, or as many as its mixture.
func datasets(s *Source) int {
	if len(s.Sources) == 0 {
		return 1
	}
	n := 0
	for i := range s.Sources {
		n += datasets(&s.Sources[i])
	}
	return n
}

const (
	// floorBatches is how many batches an engine always has room for: one that is filled and one that is sent.
	floorBatches = 2
	// floorShare bounds the floor of one engine: 1/floorShare of the budget. Floors of 16 engines take a quarter of the
	// budget, and with their caches three quarters; an eighth is kept for tables that grow, and an eighth is left for
	// reads. A larger batch takes free memory, else it waits for its turn in the queue.
	floorShare = 64
)

// chargeFloor charges the memory for batches that an engine keeps while others wait.
func chargeFloor(ctx context.Context, account *budget.Account, o *Options, batch int64) (int64, error) {
	total := o.Budget.Limit()
	if total == 0 || account == nil {
		return 0, nil
	}
	floor := min(floorBatches*batch, o.MemoryBytes, total/floorShare)
	if err := account.Grow(ctx, floor); err != nil {
		return 0, err
	}
	account.Take(floor) // the memory of batches gives it back
	return floor, nil
}

// chargeTiles charges a cache of n bytes of decoded tiles, or of as many as there is room for, down to an eighth: with
// fewer, tiles are decoded more than once, which costs time and no more.
func chargeTiles(ctx context.Context, account *budget.Account, b *budget.Budget, n int64) (int64, error) {
	for least := n / 8; n/2 >= least && n > least; n /= 2 {
		if b.TryAcquire(n) {
			account.Put(n)
			return n, nil
		}
	}
	return n, account.Grow(ctx, n)
}
