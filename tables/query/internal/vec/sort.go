package vec

import (
	"slices"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
)

// SortKey is one term of ORDER BY.
type SortKey struct {
	Values           *tables.Vector
	Desc, NullsFirst bool
}

func (k *SortKey) Check() error {
	if sqltype.RepOf(k.Values.Type()) == sqltype.RepOther {
		return sqlerr.Unsupported("ORDER BY of type %s", k.Values.Type())
	}
	return nil
}

// compare returns the order of two rows by the key alone.
func (k *SortKey) compare() func(a, b int) int {
	values := comparator(k.Values)
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

// SortRows returns the first most of n rows in the order of the keys, all of them if most is
// negative; equal rows stand in their own order.
func SortRows(keys []SortKey, n, most int) []int32 {
	compare := make([]func(a, b int) int, len(keys))
	for i := range keys {
		compare[i] = keys[i].compare()
	}
	less := func(a, b int32) int {
		for _, c := range compare {
			if o := c(int(a), int(b)); o != 0 {
				return o
			}
		}
		return int(a) - int(b)
	}
	if most < 0 || most > n {
		most = n
	}
	// Few of many are kept by sorting as many again whenever that many came together.
	room := n
	if most < n/4 {
		room = max(2*most, 1<<12)
	}
	best := make([]int32, 0, min(room, n))
	worst := int32(-1) // of those that stay
	for r := range n {
		if len(best) == room {
			slices.SortFunc(best, less)
			best = best[:most]
			if most > 0 {
				worst = best[most-1]
			}
		}
		if worst < 0 || less(int32(r), worst) < 0 {
			best = append(best, int32(r))
		}
	}
	slices.SortFunc(best, less)
	return best[:most]
}
