package build

import (
	"context"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/tables"
)

// levelsOf turns the tree of a dataset into levels, and checks it.
func levelsOf(ctx context.Context, t *Tortilla, form Form) ([]*level, error) {
	if t == nil || len(t.Samples) == 0 {
		return nil, fault.New(fault.Unsupported, "dataset", fault.NoOffset, "has no samples")
	}
	var levels []*level
	tortillas, parents, names := []*Tortilla{t}, []int32{0}, []string{""}
	for len(tortillas) > 0 {
		if len(levels) == taco2.MaxLevels {
			return nil, fault.New(fault.Limit, "sample "+names[0], fault.NoOffset,
				"is a folder at level %d: a container has at most %d levels", taco2.MaxLevels-1, taco2.MaxLevels)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		level, below, err := levelOf(len(levels), form, tortillas, parents, names)
		if err != nil {
			return nil, err
		}
		if level.columns, err = columnsOf(tortillas, names); err != nil {
			return nil, err
		}
		levels = append(levels, level)
		tortillas, parents, names = below.tortillas, below.parents, below.names
		if len(tortillas) == 0 {
			level.first = nil
		}
	}
	if form.Named() { // its structure says what samples have in common
		return levels, nil
	}
	return levels, sameTrees(levels)
}

// folders are the folders of a level: their samples, rows and paths.
type folders struct {
	tortillas []*Tortilla
	parents   []int32
	names     []string
}

// levelOf returns the rows of tortillas, whose folders have the given rows and paths, and the folders among them.
func levelOf(k int, form Form, tortillas []*Tortilla, parents []int32, names []string) (*level, *folders, error) {
	l, below := &level{}, &folders{}
	children := int32(0)
	seen := map[string]bool{}
	for i, tortilla := range tortillas {
		clear(seen)
		for j := range tortilla.Samples {
			sample := &tortilla.Samples[j]
			path := join(names[i], sample.ID)
			if err := checkSample(sample, badIDFor(form, k, sample.ID), path, seen); err != nil {
				return nil, nil, err
			}
			seen[sample.ID] = true
			row := int32(len(l.ids))
			l.first = append(l.first, children)
			l.add(k, row, parents[i], sample.ID, sample.Children != nil, content{file: sample.File,
				bytes: sample.Bytes, entry: sample.Entry})
			if sample.Children != nil {
				below.tortillas = append(below.tortillas, sample.Children)
				below.parents = append(below.parents, row)
				below.names = append(below.names, path)
				children += int32(sample.Children.rows())
			}
		}
		for n := range tortilla.padding() {
			l.first = append(l.first, children)
			l.add(k, int32(len(l.ids)), parents[i], model.PadPrefix+strconv.Itoa(n), false, placeholder)
		}
	}
	l.first = append(l.first, children)
	return l, below, nil
}

// join returns the path of an id below a folder.
func join(folder, id string) string {
	if folder == "" {
		return id
	}
	return folder + "/" + id
}

// checkSample checks a sample, but not the samples below it. badID is what is wrong with its id, or "".
func checkSample(s *Sample, badID, path string, siblings map[string]bool) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Unsupported, "sample "+strconv.Quote(path), fault.NoOffset, format, args...)
	}
	if badID != "" {
		return bad("its id %s", badID)
	}
	if siblings[s.ID] {
		return bad("a sibling has the same id")
	}
	set := 0
	for _, is := range []bool{s.File != "", s.Bytes != nil, s.Entry != nil, s.Kept != nil, s.Children != nil} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return bad("has %d of a file, bytes, an entry and children: it must have exactly one", set)
	case s.Children != nil && len(s.Children.Samples) == 0:
		return bad("is a folder without samples")
	case s.Entry != nil && s.Entry.Kind == taco.Folder:
		return bad("its entry is a folder of another container")
	case s.Children != nil && s.Children.PadTo < 0:
		return bad("pad_to is %d: it must not be negative", s.Children.PadTo)
	}
	return nil
}

// columnsOf returns the columns of a level, in the order in which they first appear, with a row for each sample.
func columnsOf(tortillas []*Tortilla, names []string) (*tables.Table, error) {
	s := schema{types: map[string]tables.Type{}}
	for _, t := range tortillas {
		s.fill = s.fill || t.Fill
	}
	var parts []*tables.Table
	for i, tortilla := range tortillas {
		tbls, err := tortilla.table(names[i])
		if err != nil {
			return nil, err
		}
		for j, part := range tbls {
			path := names[i]
			if len(tbls) > 1 || path == "" {
				path = join(path, tortilla.Samples[j].ID)
			}
			if err := s.add(part, path); err != nil {
				return nil, err
			}
		}
		parts = append(parts, tbls...)
		if n := tortilla.padding(); n > 0 {
			parts = append(parts, tables.New(n, nil, nil))
		}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return tables.Concat(parts, tables.Mixed)
}

// table returns the columns of the samples: one table, or one for each sample.
func (t *Tortilla) table(name string) ([]*tables.Table, error) {
	bad := func(path, format string, args ...any) error {
		return fault.New(fault.Unsupported, "sample "+strconv.Quote(path), fault.NoOffset, format, args...)
	}
	if t.Columns != nil && t.Columns.Len() != len(t.Samples) {
		return nil, bad(name, "%d rows of columns for %d samples", t.Columns.Len(), len(t.Samples))
	}
	mine := false
	for i := range t.Samples {
		sample := &t.Samples[i]
		if sample.Columns != nil && sample.Columns.Len() != 1 {
			return nil, bad(join(name, sample.ID), "%d rows of columns: it must be one", sample.Columns.Len())
		}
		mine = mine || sample.Columns != nil
	}
	if !mine {
		if t.Columns != nil {
			return []*tables.Table{t.Columns}, nil
		}
		return []*tables.Table{tables.New(len(t.Samples), nil, nil)}, nil
	}
	parts := make([]*tables.Table, len(t.Samples))
	for i := range parts {
		parts[i] = t.Samples[i].Columns
		if parts[i] == nil {
			parts[i] = tables.New(1, nil, nil)
		}
	}
	if t.Columns == nil {
		return parts, nil
	}
	for i := range parts {
		parts[i] = tables.Join(t.Columns.Take([]int{i}), parts[i])
	}
	return parts, nil
}
