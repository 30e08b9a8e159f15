package build

import (
	"fmt"
	"strconv"

	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// sameTree checks that a sample of level 0 has the tree of the first one (PIT-1): kinds, and below level 0 ids. Padding
// matches anything.
func sameTree(levels []*Level, row int) error {
	top := levels[0].Rows
	if what := apart(levels, 0, 0, row); what != "" {
		return unsupported("sample "+strconv.Quote(top[row].ID),
			"differs from %q, and all samples of level 0 must have the same tree (PIT-1): %s", top[0].ID, what)
	}
	return nil
}

// apart says how the trees below rows i and j of level k differ, or "".
func apart(levels []*Level, k, i, j int) string {
	l := levels[k]
	a, b := &l.Rows[i], &l.Rows[j]
	switch {
	case a.Padding || b.Padding:
		return ""
	case k > 0 && a.ID != b.ID:
		return "it has " + strconv.Quote(b.ID) + " in place of " + strconv.Quote(a.ID)
	case a.Folder != b.Folder:
		return strconv.Quote(b.ID) + " is a " + kindName(b.Folder) + " in place of a " + kindName(a.Folder)
	case !a.Folder:
		return ""
	}
	from, to := l.below(i)
	other, end := l.below(j)
	if to-from != end-other {
		return fmt.Sprintf("%q has %d children in place of %d", b.ID, end-other, to-from)
	}
	for n := range to - from {
		if what := apart(levels, k+1, from+n, other+n); what != "" {
			return what
		}
	}
	return ""
}

// named returns the id of a row of the first sample or, if that is a placeholder, of the first sample that has another
// one there. All samples have the same number of rows.
func (l *Level) named(row, rows int) string {
	for i := row; i < len(l.Rows); i += rows {
		if !l.Rows[i].Padding {
			return l.Rows[i].ID
		}
	}
	return l.Rows[row].ID
}

// pit returns taco:pit_schema: the tree that all samples of level 0 have.
func pit(levels []*Level) *model.Tree {
	p := &model.Tree{Hierarchy: map[string][]model.TreeFolder{}}
	top := levels[0]
	p.Root.N, p.Root.Type = int64(len(top.Rows)), kindName(top.Rows[0].Folder)
	// All folders at one place of the tree have the same children, so that a level has the rows of the first
	// folder as often as there are folders at the top.
	times := int64(0)
	for i := range top.Rows {
		if top.Rows[i].Folder {
			times++
		}
	}
	starts := []int{0}
	for k := 1; k < len(levels); k++ {
		up, level := levels[k-1], levels[k]
		var below []int
		for _, row := range starts {
			if !up.Rows[row].Folder {
				continue
			}
			from, to := up.below(row)
			pitFolder := model.TreeFolder{N: times * int64(to-from)}
			for c := from; c < to; c++ {
				pitFolder.Type = append(pitFolder.Type, kindName(level.Rows[c].Folder))
				pitFolder.ID = append(pitFolder.ID, level.named(c, len(level.Rows)/int(times)))
				if level.Rows[c].Folder {
					below = append(below, c)
				}
			}
			p.Hierarchy[strconv.Itoa(k)] = append(p.Hierarchy[strconv.Itoa(k)], pitFolder)
		}
		starts = below
	}
	return p
}
