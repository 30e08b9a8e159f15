package build

import (
	"fmt"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// sameTrees checks that all samples of level 0 have the same tree (PIT-1): kinds, and below level 0 ids. Padding
// matches anything.
func sameTrees(levels []*level) error {
	top := levels[0]
	for i := range top.ids {
		if top.padding(i) {
			continue
		}
		if what := sameTree(levels, 0, 0, i, true); what != "" {
			return fault.New(fault.Unsupported, "sample "+strconv.Quote(top.ids[i]), fault.NoOffset,
				"differs from %q, and all samples of level 0 must have the same tree (PIT-1): %s", top.ids[0], what)
		}
	}
	return nil
}

// sameTree says how the trees below rows a and b of level k differ, or "".
func sameTree(levels []*level, k, a, b int, top bool) string {
	l := levels[k]
	if l.padding(a) || l.padding(b) {
		return ""
	}
	if !top && l.ids[a] != l.ids[b] {
		return "it has " + strconv.Quote(l.ids[b]) + " in place of " + strconv.Quote(l.ids[a])
	}
	if l.folders[a] != l.folders[b] {
		return strconv.Quote(l.ids[b]) + " is a " + kindName(l.folders[b]) + " in place of a " + kindName(l.folders[a])
	}
	if !l.folders[a] {
		return ""
	}
	na, nb := l.first[a+1]-l.first[a], l.first[b+1]-l.first[b]
	if na != nb {
		return fmt.Sprintf("%q has %d children in place of %d", l.ids[b], nb, na)
	}
	for i := range na {
		if what := sameTree(levels, k+1, int(l.first[a]+i), int(l.first[b]+i), false); what != "" {
			return what
		}
	}
	return ""
}

// named returns the id of a row of the first sample or, if that is a placeholder, of the first sample that has another
// one there. All samples have the same number of rows.
func (l *level) named(row, rows int) string {
	for i := row; i < len(l.ids); i += rows {
		if !l.padding(i) {
			return l.ids[i]
		}
	}
	return l.ids[row]
}

// pit returns taco:pit_schema: the tree that all samples of level 0 have.
func pit(levels []*level) *model.Tree {
	p := &model.Tree{Hierarchy: map[string][]model.TreeFolder{}}
	top := levels[0]
	p.Root.N, p.Root.Type = int64(len(top.ids)), kindName(top.folders[0])
	// All folders at one place of the tree have the same children, so that a level has the rows of the first
	// folder as often as there are folders at the top.
	times := int64(0)
	for i := range top.ids {
		if top.folders[i] {
			times++
		}
	}
	starts := []int32{0}
	for k := 1; k < len(levels); k++ {
		up, level := levels[k-1], levels[k]
		var below []int32
		for _, row := range starts {
			if !up.folders[row] {
				continue
			}
			pitFolder := model.TreeFolder{N: times * int64(up.first[row+1]-up.first[row])}
			for c := up.first[row]; c < up.first[row+1]; c++ {
				pitFolder.Type = append(pitFolder.Type, kindName(level.folders[c]))
				pitFolder.ID = append(pitFolder.ID, level.named(int(c), len(level.ids)/int(times)))
				if level.folders[c] {
					below = append(below, c)
				}
			}
			p.Hierarchy[strconv.Itoa(k)] = append(p.Hierarchy[strconv.Itoa(k)], pitFolder)
		}
		starts = below
	}
	return p
}
