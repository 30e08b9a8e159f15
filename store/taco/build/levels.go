package build

import (
	"context"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// grower makes levels of samples, one after the other.
type grower struct{ levels []*Level }

// levelsOf turns the samples of a dataset into levels, and checks them.
func levelsOf(ctx context.Context, t *Tortilla, form Form) ([]*Level, error) {
	g, ids := &grower{}, map[string]bool{}
	if t != nil {
		for i := range t.Samples {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			row, err := g.grow(0, 0, &t.Samples[i])
			if err == nil {
				err = checkSample(g.levels, form, int(row), ids)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if len(g.levels) == 0 {
		return nil, unsupported("dataset", "has no samples")
	}
	g.levels[len(g.levels)-1].first = nil
	for _, l := range g.levels {
		l.Table = tables.New(len(l.Rows), nil, nil)
	}
	return g.levels, nil
}

// grow adds the rows of a sample, and returns its own. Each level has, in first, the end of the children of its rows.
func (g *grower) grow(k int, parent int32, s *Sample) (row int32, err error) {
	if len(g.levels) == k {
		g.levels = append(g.levels, &Level{first: []int32{0}})
	}
	level := g.levels[k]
	row = level.add(k, Row{ID: s.ID, Parent: parent, Folder: s.Children != nil, file: s.File, bytes: s.Bytes})
	set := 0
	for _, is := range []bool{s.File != "", s.Bytes != nil, s.Children != nil} {
		if is {
			set++
		}
	}
	part := "sample " + strconv.Quote(path(g.levels, k, int(row)))
	switch {
	case set != 1:
		return 0, unsupported(part, "has %d of a file, bytes and children: it must have exactly one", set)
	case s.Children != nil && k+1 == taco2.MaxLevels:
		return 0, fault.New(fault.Limit, part,
			"is a folder at level %d: a container has at most %d levels", k, taco2.MaxLevels)
	case s.Children != nil:
		for i := range s.Children.Samples {
			if _, err := g.grow(k+1, row, &s.Children.Samples[i]); err != nil {
				return 0, err
			}
		}
	}
	children := int32(0)
	if k+1 < len(g.levels) {
		children = int32(len(g.levels[k+1].Rows))
	}
	level.first = append(level.first, children)
	return row, nil
}

// checkSample checks a sample of level 0 with all that is below it: ids, which readers accept more of than writers may
// write, and that it has the tree of the first sample (PIT-1). The samples of TACO 3 have a structure in its place.
// seen are the ids of the samples before.
func checkSample(levels []*Level, form Form, row int, seen map[string]bool) error {
	if err := checkIDs(levels, form, 0, row, seen); err != nil || form.Named() {
		return err
	}
	return sameTree(levels, row)
}

// checkIDs checks a row of level k and all that is below it.
func checkIDs(levels []*Level, form Form, k, row int, siblings map[string]bool) error {
	level := levels[k]
	sample := &level.Rows[row]
	bad := func(what string) error {
		return unsupported("sample "+strconv.Quote(path(levels, k, row)), "%s", what)
	}
	if what := badIDFor(form, k, sample.ID); what != "" && !sample.Padding {
		return bad("its id " + what)
	}
	if siblings[sample.ID] {
		return bad("a sibling has the same id")
	}
	if siblings[sample.ID] = true; !sample.Folder {
		return nil
	}
	if level.first == nil || level.first[row] == level.first[row+1] {
		return bad("is a folder without samples")
	}
	seen := map[string]bool{}
	first, end := level.below(row)
	for child := first; child < end; child++ {
		if err := checkIDs(levels, form, k+1, child, seen); err != nil {
			return err
		}
	}
	return nil
}

// join returns the path of an id below a folder.
func join(folder, id string) string {
	if folder == "" {
		return id
	}
	return folder + "/" + id
}

// nodeOf returns what tells of the rows of levels.
func nodeOf(levels []*Level) model.Node {
	return func(k, row int) (id string, folder bool, children []int32) {
		r := &levels[k].Rows[row]
		if !r.Folder {
			return r.ID, false, nil
		}
		first, end := levels[k].below(row)
		below := num.Range[int32](0, end-first)
		for i := range below {
			below[i] += int32(first)
		}
		return r.ID, true, below
	}
}

// sameTree checks that a sample of level 0 has the tree of the first one (PIT-1). Padding matches anything.
func sameTree(levels []*Level, row int) error {
	node, top := nodeOf(levels), levels[0].Rows
	first := node.Sample(row + 1)
	if what := node.Apart(0, first, row); what != "" && !top[row].Padding {
		return unsupported("sample "+strconv.Quote(top[row].ID),
			"differs from %q, and all samples of level 0 must have the same tree (PIT-1): %s", top[first].ID, what)
	}
	return nil
}

// pit returns taco:pit_schema: the tree that all samples of level 0 have.
func pit(levels []*Level) *model.Tree {
	rows := make([]int, len(levels))
	for k, level := range levels {
		rows[k] = len(level.Rows)
	}
	return nodeOf(levels).Tree(rows)
}
