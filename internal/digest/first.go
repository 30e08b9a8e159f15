package digest

import (
	"context"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/internal/budget"
)

// Bytes of memory that FirstOf takes for a digest: while it runs, 16 of the digest and 16 of First; and then, where
// digests are equal, 4 of the place.
const (
	firstBytes = 32
	placeBytes = 4
)

// FirstOf is First of n digests that fill sets, charged to the budget. It is nil where memory lacks, too.
func FirstOf(ctx context.Context, n int64, fill func(sums []xxh3.Uint128) error) (first []uint32, err error) {
	account := budget.Of(ctx)
	if !account.TryGrow(firstBytes * n) {
		return nil, nil
	}
	defer func() {
		after := int64(0)
		if first != nil {
			after = placeBytes * n
		}
		account.Shrink(firstBytes*n - after)
	}()
	sums := make([]xxh3.Uint128, n)
	if err = fill(sums); err == nil {
		first = First(sums)
	}
	return first, err
}

// First returns for each digest the place of the first one that is equal to it; nil if all differ. Digests of zero
// stand for nothing, and differ from each other, too. It takes up to 16 bytes a digest while it runs.
func First(sums []xxh3.Uint128) (first []uint32) {
	slots := make([]uint32, 1<<bits.Len(uint(2*len(sums)))) // of a hash table: places, counted from 1
	mask := uint64(len(slots) - 1)
	for i, sum := range sums {
		if sum == (xxh3.Uint128{}) {
			continue
		}
		for slot := sum.Lo & mask; ; slot = (slot + 1) & mask {
			other := slots[slot]
			if other == 0 {
				slots[slot] = uint32(i) + 1
				break
			}
			if sums[other-1] != sum {
				continue
			}
			if first == nil {
				first = make([]uint32, len(sums))
				for k := range first {
					first[k] = uint32(k)
				}
			}
			first[i] = other - 1
			break
		}
	}
	return first
}
