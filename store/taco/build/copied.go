package build

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// copied returns the levels of rows of a dataset, and checks them.
func copied(ctx context.Context, d *taco.Dataset, rows []int, form Form) ([]*level, error) {
	if len(rows) == 0 {
		return nil, fault.New(fault.Unsupported, "dataset", fault.NoOffset, "has no samples")
	}
	var levels []*level
	parents := make([]int32, len(rows))
	for k := 0; ; k++ {
		table, err := d.Level(ctx, k)
		if err != nil {
			return nil, err
		}
		level, err := copiedLevel(ctx, d, table, k, rows, parents)
		if err != nil {
			return nil, err
		}
		levels = append(levels, level)
		if k+1 >= d.Levels() {
			break
		}
		if rows, parents, err = below(ctx, d, table, level, k, rows); err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			break
		}
	}
	levels[len(levels)-1].first = nil
	return levels, checkCopied(levels, form)
}

// copiedLevel returns rows of level k, whose table is t.
func copiedLevel(ctx context.Context, d *taco.Dataset, t *tables.Table, k int, rows []int,
	parents []int32) (*level, error) {
	l := &level{}
	for i, row := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e, err := d.EntryAt(ctx, k, row)
		if err != nil {
			return nil, err
		}
		c := content{entry: &e, padding: e.Padding}
		if e.Padding {
			c.bytes = []byte{}
		}
		l.add(k, int32(i), parents[i], e.ID, e.Kind == taco.Folder, c)
	}
	s := schema{types: map[string]tables.Type{}}
	var keep []int
	for i, c := range t.Columns() {
		if !ofContainer(c.Name, d.IDColumn()) {
			keep = append(keep, i)
		}
	}
	l.columns = t.Select(keep).Take(slices.Clone(rows))
	return l, s.addLevel(l.columns, k)
}

// ofContainer reports whether a column holds places or ids of samples in their container. The new container
// computes its own.
func ofContainer(name, id string) bool {
	switch name {
	case id, "type", "path", "tortilla:offset", "tortilla:length", "tortilla:root", "__index_level_0__":
		return true
	}
	return strings.HasPrefix(name, "internal:")
}

// below returns the children of rows of level k, and for each the place of its parent among the rows.
func below(ctx context.Context, d *taco.Dataset, t *tables.Table, l *level, k int, rows []int) (next []int,
	parents []int32, err error) {
	up, err := d.Parents(ctx, k+1)
	if err != nil {
		return nil, nil, err
	}
	first, list := model.Group(up, t.Len())
	for i, row := range rows {
		l.first = append(l.first, int32(len(next)))
		for _, c := range list[first[row]:first[row+1]] {
			next, parents = append(next, int(c)), append(parents, int32(i))
		}
	}
	l.first = append(l.first, int32(len(next)))
	return next, parents, nil
}

// checkCopied checks ids and trees, because readers accept more than writers may write.
func checkCopied(levels []*level, form Form) error {
	for k, level := range levels {
		seen, parent := map[string]bool{}, int32(-1)
		for i, id := range level.ids {
			if k > 0 && level.parents[i] != parent {
				clear(seen)
				parent = level.parents[i]
			}
			bad := func(what string) error {
				name := strconv.Quote(path(levels, k, i))
				return fault.New(fault.Unsupported, "sample "+name, fault.NoOffset, "%s", what)
			}
			if what := form.badID(k, id); what != "" && !level.padding(i) {
				return bad("its id " + what)
			}
			if seen[id] {
				return bad("a sibling has the same id")
			}
			seen[id] = true
			if level.folders[i] && (level.first == nil || level.first[i] == level.first[i+1]) {
				return bad("is a folder without samples")
			}
		}
	}
	if form.Named() {
		return nil
	}
	return sameTrees(levels)
}
