// Package containers opens TACO containers and Tortillas as datasets, and has the tables that queries about their
// samples name.
package containers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
)

// About says what containers are.
type About struct {
	// Format is what the containers are: "TACO 2 (ZIP)".
	Format string `json:"format"`
	// Levels is the number of levels.
	Levels   int    `json:"levels"`
	IDColumn string `json:"id_column"`
	// Parts are the containers that were opened.
	Parts []string `json:"parts"`
	// Collection is the document about the dataset, as JSON has it, or null.
	Collection json.RawMessage `json:"collection"`
}

// About describes the containers.
func (s Set) About() About {
	return About{s.Form().String(), s.Levels(), s.IDColumn(), s.Parts(), s.Collection()}
}

// Tables returns the tables that queries about the samples that meet some conditions can name: data has these
// samples, below0, below1, … are as of Samples.below, entries0, … as of Samples.entries, and all others as of
// taco.Dataset.SQLTable. It uses only the option SQL.
func (s Set) Tables(ctx context.Context, where []spec.Condition, o resources.Options) (query.Tables, error) {
	found, err := s.Samples(ctx, spec.Subset{Where: where}, o)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, name string) (*tables.Table, error) {
		if level, ok := numbered(name, "entries"); ok {
			return found.entries(ctx, level)
		}
		if level, ok := numbered(name, "below"); ok {
			return found.below(ctx, level)
		}
		return found.SQLTable(ctx, name)
	}, nil
}

// numbered returns the number of a name such as "below1".
func numbered(name, word string) (level int, ok bool) {
	digits, ok := strings.CutPrefix(strings.ToLower(name), word)
	level, err := strconv.Atoi(digits)
	return level, ok && err == nil && digits == strconv.Itoa(level) && level >= 0
}

// Columns of the tables below0, below1, ….
const (
	FolderColumn = "chaski:folder" // 1 if the row has children, else 0
	VSIColumn    = "gdal_vsi"      // the path under which GDAL opens the bytes of the row
)

// below returns the rows of a level below the samples, without those that conditions on place or time drop, in
// the order of the samples. It has the columns of the level and of the levels above it, named "l1:id", "l0:id", …,
// without the format's own ("internal:…"), FolderColumn and VSIColumn.
func (s *Samples) below(ctx context.Context, level int) (*tables.Table, error) {
	positions, err := s.Below(ctx, level)
	if err != nil {
		return nil, err
	}
	if positions, err = s.inOrder(ctx, level, positions); err != nil {
		return nil, err
	}
	table, err := s.c.set.StoredTable(ctx, fmt.Sprintf("l%d", level))
	if err != nil {
		return nil, err
	}
	var shown []int
	for k := level; k >= 0; k-- {
		prefix := fmt.Sprintf("l%d:", k)
		for i, c := range table.Columns() {
			rest, ok := strings.CutPrefix(c.Name, prefix)
			if ok && !strings.HasPrefix(rest, "internal:") {
				shown = append(shown, i)
			}
		}
	}
	return tables.Join(table.Select(shown).Take(positions), s.c.set.places(level, positions)), nil
}

// places returns the columns FolderColumn and VSIColumn of some rows of a level. They are computed when they are
// read: columns that a query leaves out are free and cause no errors.
func (s Set) places(level int, at []int) *tables.Table {
	columns := []tables.Column{{Name: FolderColumn, Type: tables.Ints},
		{Name: VSIColumn, Type: tables.Strings}}
	return tables.New(len(at), columns, func(ctx context.Context, i int) (*tables.Vector, error) {
		folders, paths := make([]int64, len(at)), make([]string, len(at))
		for place, row := range at {
			entry, err := s.EntryAt(ctx, level, row)
			if err != nil {
				return nil, err
			}
			if entry.Folder {
				folders[place] = 1
			}
			paths[place] = entry.VSI()
			if columns[i].Name == VSIColumn && source.IsRemote(entry.URI) &&
				strings.HasSuffix(paths[place], entry.URI) {
				return nil, fault.WithFile(fault.New(fault.Unsupported, "sample "+entry.ID,
					"GDAL has no name for it"), entry.URI)
			}
		}
		if columns[i].Name == FolderColumn {
			return tables.NewInts(tables.Ints, folders, nil), nil
		}
		return tables.NewStrings(paths, nil), nil
	})
}

// inOrder sorts rows of a level by the first position of their sample. Rows of one sample keep their order.
func (s *Samples) inOrder(ctx context.Context, level int, at []int) ([]int, error) {
	first := make(map[int32]int, len(s.Rows))
	for i, row := range s.Rows {
		if _, ok := first[row]; !ok {
			first[row] = i
		}
	}
	top := num.As[int32](at)
	for k := level; k > 0; k-- {
		parents, err := s.c.set.Parents(ctx, k)
		if err != nil {
			return nil, err
		}
		for i, row := range top {
			top[i] = parents[row]
		}
	}
	places := make(map[int]int, len(at)) // by row
	for i, row := range at {
		places[row] = first[top[i]]
	}
	slices.SortStableFunc(at, func(a, b int) int { return places[a] - places[b] })
	return at, nil
}

// entries returns the table of the places of the rows of a level below the samples, in the order of the level, or of
// the samples in theirs: "row" in the level, "parent" in the level above or -1, "folder" (1 if the row has children),
// "id", "uri", and "offset" and "size" in this file, -1 for the whole file.
func (s *Samples) entries(ctx context.Context, level int) (*tables.Table, error) {
	list := num.As[int](s.Rows)
	if level > 0 {
		var err error
		if list, err = s.Below(ctx, level); err != nil {
			return nil, err
		}
	}
	parents, err := s.c.set.Parents(ctx, level)
	if err != nil {
		return nil, err
	}
	var numbers [5][]int64
	var texts [2][]string
	for _, row := range list {
		entry, err := s.c.set.EntryAt(ctx, level, row)
		if err != nil {
			return nil, err
		}
		parent, folder := int64(-1), int64(0)
		if parents != nil {
			parent = int64(parents[row])
		}
		if entry.Folder {
			folder = 1
		}
		for i, n := range []int64{int64(row), parent, folder, entry.Offset, entry.Size} {
			numbers[i] = append(numbers[i], n)
		}
		texts[0], texts[1] = append(texts[0], entry.ID), append(texts[1], entry.URI)
	}
	var columns []tables.Column
	for _, name := range []string{"row", "parent", "folder", "offset", "size"} {
		columns = append(columns, tables.Column{Name: name, Type: tables.Ints})
	}
	columns = append(columns, tables.Column{Name: "id", Type: tables.Strings},
		tables.Column{Name: "uri", Type: tables.Strings})
	return tables.New(len(list), columns, func(_ context.Context, i int) (*tables.Vector, error) {
		if i < len(numbers) {
			return tables.NewInts(tables.Ints, numbers[i], nil), nil
		}
		return tables.NewStrings(texts[i-len(numbers)], nil), nil
	}), nil
}
