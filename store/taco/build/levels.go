package build

import (
	"context"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/tables"
)

// grower makes levels of samples, one after the other.
type grower struct {
	form   Form
	levels []*Level
	seen   map[string]bool // the ids of level 0
}

// levelsOf turns the samples of a dataset into levels, and checks them.
func levelsOf(ctx context.Context, t *Tortilla, form Form) ([]*Level, error) {
	g := &grower{form: form}
	if t != nil {
		for i := range t.Samples {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if _, err := g.sample(&t.Samples[i]); err != nil {
				return nil, err
			}
		}
	}
	if err := g.end(); err != nil {
		return nil, err
	}
	for _, l := range g.levels {
		l.Table = tables.New(len(l.Rows), nil, nil)
	}
	return g.levels, nil
}

// sample checks a sample of level 0, and adds its rows. It returns its own.
func (g *grower) sample(s *Sample) (row int, err error) {
	if g.seen == nil {
		g.seen = map[string]bool{}
	}
	if err := g.check(s, s.ID, 0, g.seen); err != nil {
		return 0, err
	}
	row = int(g.grow(0, 0, s))
	if g.form.Named() { // its structure says what samples have in common
		return row, nil
	}
	// All samples must have the same tree (PIT-1): a stream refuses one that differs before its bytes are written.
	return row, sameTree(g.levels, row)
}

// check checks a sample and all that is below it.
func (g *grower) check(s *Sample, path string, k int, siblings map[string]bool) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Unsupported, "sample "+strconv.Quote(path), fault.NoOffset, format, args...)
	}
	set := 0
	for _, is := range []bool{s.File != "", s.Bytes != nil, s.Children != nil} {
		if is {
			set++
		}
	}
	what := badIDFor(g.form, k, s.ID)
	switch {
	case what != "":
		return bad("its id %s", what)
	case siblings[s.ID]:
		return bad("a sibling has the same id")
	case set != 1:
		return bad("has %d of a file, bytes and children: it must have exactly one", set)
	case s.Children != nil && len(s.Children.Samples) == 0:
		return bad("is a folder without samples")
	case s.Children != nil && k+1 == taco2.MaxLevels:
		return fault.New(fault.Limit, "sample "+path, fault.NoOffset,
			"is a folder at level %d: a container has at most %d levels", k, taco2.MaxLevels)
	}
	siblings[s.ID] = true
	if s.Children == nil {
		return nil
	}
	seen := map[string]bool{}
	for i := range s.Children.Samples {
		c := &s.Children.Samples[i]
		if err := g.check(c, join(path, c.ID), k+1, seen); err != nil {
			return err
		}
	}
	return nil
}

// grow adds the rows of a sample, and returns its own. Each level has, in first, the end of the children of its rows.
func (g *grower) grow(k int, parent int32, s *Sample) int32 {
	if len(g.levels) == k {
		g.levels = append(g.levels, &Level{first: []int32{0}})
	}
	l := g.levels[k]
	row := l.add(k, Row{ID: s.ID, Parent: parent, Folder: s.Children != nil, file: s.File, bytes: s.Bytes})
	if s.Children != nil {
		for i := range s.Children.Samples {
			g.grow(k+1, row, &s.Children.Samples[i])
		}
	}
	children := int32(0)
	if k+1 < len(g.levels) {
		children = int32(len(g.levels[k+1].Rows))
	}
	l.first = append(l.first, children)
	return row
}

// end completes the levels.
func (g *grower) end() error {
	if len(g.levels) == 0 {
		return fault.New(fault.Unsupported, "dataset", fault.NoOffset, "has no samples")
	}
	g.levels[len(g.levels)-1].first = nil
	return nil
}

// join returns the path of an id below a folder.
func join(folder, id string) string {
	if folder == "" {
		return id
	}
	return folder + "/" + id
}
