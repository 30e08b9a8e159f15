package vec

import (
	"slices"

	"github.com/chaski-eo/chaski/format/tables"
)

// SortKey is one term of ORDER BY.
type SortKey struct {
	Values           *tables.Vector
	Desc, NullsFirst bool
}

// compare returns the order of two rows by this key alone.
func (k *SortKey) compare() func(a, b int) int {
	values := Comparator(k.Values, k.Values)
	sign := 1
	if k.Desc {
		sign = -1
	}
	if k.Values.Nulls() == nil {
		return func(a, b int) int { return sign * values(a, b) }
	}
	last := 1
	if k.NullsFirst {
		last = -1
	}
	nulls := k.Values.Nulls()
	return func(a, b int) int {
		switch {
		case nulls[a] && nulls[b]:
			return 0
		case nulls[a]:
			return last
		case nulls[b]:
			return -last
		}
		return sign * values(a, b)
	}
}

// SortRows returns the first limit of n rows in the order of the keys, or all if limit is negative.
// Equal rows keep their order.
func SortRows(keys []SortKey, n, limit int) []int32 {
	compare := make([]func(a, b int) int, len(keys))
	for i := range keys {
		compare[i] = keys[i].compare()
	}
	order := func(a, b int32) int {
		for _, c := range compare {
			if o := c(int(a), int(b)); o != 0 {
				return o
			}
		}
		return int(a) - int(b)
	}
	if limit < 0 || limit > n {
		limit = n
	}
	// To keep few of many rows, collect twice as many, sort, and drop the worse half: that takes
	// memory for few rows and sorts each row that is kept only a few times.
	room := n
	if limit < n/4 {
		room = max(2*limit, 1<<12)
	}
	best := make([]int32, 0, min(room, n))
	worst := int32(-1) // of the kept rows: a row after it can be dropped at once
	for row := range n {
		if len(best) == room {
			slices.SortFunc(best, order)
			best = best[:limit]
			if limit > 0 {
				worst = best[limit-1]
			}
		}
		if worst < 0 || order(int32(row), worst) < 0 {
			best = append(best, int32(row))
		}
	}
	slices.SortFunc(best, order)
	return best[:limit]
}
