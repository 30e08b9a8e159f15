package build

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
)

// group is samples of level 0 that are written together.
type group struct {
	name string // the value that they share; "" if they are all samples, or a range of them
	rows []int
}

// groups returns the samples of level 0 by their values in a column, in the order in which the values first appear.
// Padding is in none. A value becomes the name of a file or folder.
func (w *writer) groups(ctx context.Context, column string) (groups []group, err error) {
	level := w.levels[0]
	i := level.columns.Index(column)
	if i < 0 {
		return nil, fault.New(fault.NotFound, "column "+column, fault.NoOffset,
			"the samples have none: they are divided by it")
	}
	values, err := level.columns.At(ctx, i)
	if err != nil {
		return nil, err
	}
	if k := values.Kind(); k != tables.String && k != tables.Int64 && k != tables.Uint64 {
		return nil, fault.New(fault.Unsupported, "column "+column, fault.NoOffset,
			"has type %v: samples are divided by strings or integers", values.Type())
	}
	numbers := map[string]int{} // the number of a group, by its name in lower case
	for row, id := range level.ids {
		if level.padding(row) {
			continue
		}
		bad := func(format string, args ...any) error {
			return fault.New(fault.Unsupported, "sample "+strconv.Quote(id), fault.NoOffset, format, args...)
		}
		if values.Null(row) {
			return nil, bad("its %s is null", column)
		}
		name := ""
		if values.Kind() == tables.String {
			name = values.Str(row)
		} else {
			name = string(values.AppendCast(nil, row))
		}
		if what := badPart(name); what != "" {
			return nil, bad("its %s %q cannot be the name of a file: it %s", column, name, what)
		}
		// On some systems two names that differ in case only are one file.
		k, known := numbers[strings.ToLower(name)]
		if !known {
			k, numbers[strings.ToLower(name)] = len(groups), len(groups)
			groups = append(groups, group{name: name})
		}
		if groups[k].name != name {
			return nil, bad("its %s %q differs from %q in case only: they cannot be two files", column, name,
				groups[k].name)
		}
		groups[k].rows = append(groups[k].rows, row)
	}
	return groups, nil
}

// maxPart is the most bytes of a group's name: file systems and ZIPs have names of 255 bytes, and 8 are of ".tacozip".
const maxPart = 255 - 8

// badPart returns the reason why a group may not have this name, or "". Hidden names are refused, because ZIPsIn takes
// hidden files for unfinished ones.
func badPart(name string) string {
	switch what := badID(name); {
	case what != "":
		return what
	case name[0] == '.':
		return `begins with ".", as hidden files do`
	case len(name) > maxPart:
		return "has more than " + strconv.Itoa(maxPart) + " bytes"
	}
	return ""
}

// picked returns rows of level 0 with all that is below them.
func picked(levels []*level, rows []int) (out []*level) {
	parents := make([]int32, len(rows))
	for i := range parents {
		parents[i] = int32(i)
	}
	for _, l := range levels {
		p := &level{parents: parents, columns: l.columns.Take(slices.Clone(rows))}
		out = append(out, p)
		var below []int
		var up []int32
		for i, row := range rows {
			p.ids, p.folders = append(p.ids, l.ids[row]), append(p.folders, l.folders[row])
			p.content = append(p.content, l.content[row])
			if l.first == nil {
				continue
			}
			p.first = append(p.first, int32(len(below)))
			for c := l.first[row]; c < l.first[row+1]; c++ {
				below, up = append(below, int(c)), append(up, int32(i))
			}
		}
		if l.first == nil {
			break
		}
		p.first = append(p.first, int32(len(below)))
		rows, parents = below, up
	}
	return out
}
