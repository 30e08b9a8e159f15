package report

import (
	"cmp"
	"slices"
)

// Count is a kind of something and how many of it there are.
type Count struct {
	Name string
	N    int64
}

// Tally counts how often strings occur, MaxKinds strings one by one.
type Tally struct {
	n     map[string]int64
	Other int64 // occurrences of all other strings
}

func (t *Tally) add(name string) {
	if t.n == nil {
		t.n = map[string]int64{}
	}
	if _, known := t.n[name]; !known && len(t.n) >= MaxKinds {
		t.Other++
		return
	}
	t.n[name]++
}

// Kinds returns the number of distinct kinds.
func (t *Tally) Kinds() int { return len(t.n) }

// Counts returns the kinds, the most frequent first.
func (t *Tally) Counts() []Count {
	out := make([]Count, 0, len(t.n))
	for name, n := range t.n {
		out = append(out, Count{name, n})
	}
	slices.SortFunc(out, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name)) })
	return out
}

// none is the kind of assets without nodata value or without CRS.
const none = "none"
