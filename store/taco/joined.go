package taco

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// SourceColumn is the column with the file that a row of several containers comes from.
const SourceColumn = model.ColumnSource

// joined is a model.Reader of containers whose rows follow each other, so they are one container.
type joined struct {
	container *model.Container
	parts     []*model.Container
	mode      column.Mode
	chosen    bool
	warn      func(string)
	// bases has for each level the first row of each part, and the number of rows.
	bases map[int][]int
	mu    sync.Mutex // guards bases
}

// firsts returns the first row of each part in a level that was read, and the number of rows.
func (j *joined) firsts(k int) []int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bases[k]
}

// openAtOnce limits the containers that are opened or read at a time, because a remote one takes several requests.
const openAtOnce = 8

// join returns the container that has the rows of all parts. Its reader is nil if it is the only part.
func join(parts []*model.Container, mode column.Mode, chosen bool, warn func(string)) (*model.Container, *joined) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	j := &joined{parts: parts, mode: mode, chosen: chosen, warn: warn, bases: map[int][]int{}}
	j.container = model.New(model.Source{}, model.Tacollection)
	levels := 1 // without rows, if there are no parts
	for i, p := range parts {
		if i == 0 {
			j.container.URI, j.container.Form, j.container.IDColumn = p.URI, p.Form, p.IDColumn
		}
		if levels = max(levels, p.Levels()); p.Depth != nil {
			j.container.Depth = j.depth
		}
	}
	return j.container.Open(j, levels), j
}

// depth is model.Container.Depth: a Tortilla of several may have levels that the first ones lack.
func (j *joined) depth(ctx context.Context) (int, error) {
	levels := 0
	for _, p := range j.parts {
		if err := p.Deepen(ctx); err != nil {
			return 0, err
		}
		levels = max(levels, p.Levels())
	}
	return levels, nil
}

// Level implements model.Reader.
func (j *joined) Level(ctx context.Context, k int) (*model.Level, error) {
	if len(j.parts) == 0 {
		return &model.Level{Table: tables.FromVectors(nil, nil), IDs: tables.NewStrings(nil, nil)}, nil
	}
	table, bases, err := j.tables(ctx, model.LevelName(k), k == 0 && j.chosen,
		func(ctx context.Context, p *model.Container) (*tables.Table, error) {
			if k >= p.Levels() { // a Tortilla without samples at this level
				return nil, nil
			}
			return p.Table(ctx, k)
		})
	if err != nil {
		return nil, err
	}
	if k == 0 {
		for i, p := range j.parts {
			for _, row := range p.Histograms {
				j.container.Histograms = append(j.container.Histograms, int32(bases[i])+row)
			}
		}
	}
	ids, err := table.Column(ctx, j.container.IDColumn)
	j.mu.Lock()
	j.bases[k] = bases
	j.mu.Unlock()
	return &model.Level{Table: j.withSource(table, bases), IDs: ids}, fault.WithFile(err, j.container.URI)
}

// Parents implements model.Reader.
func (j *joined) Parents(ctx context.Context, k int) ([]int32, error) {
	var rows []int32
	above := j.firsts(k - 1)
	for i, part := range j.parts {
		if k >= part.Levels() {
			continue
		}
		parents, err := part.Parents(ctx, k)
		if err != nil {
			return nil, err
		}
		for _, row := range parents {
			rows = append(rows, int32(above[i])+row)
		}
	}
	return rows, nil
}

// Entry implements model.Reader.
func (j *joined) Entry(ctx context.Context, k, row int) (store.Entry, error) {
	part, row := j.place(k, row)
	return j.parts[part].Entry(ctx, k, row)
}

// place returns the part with a row of a level that was read, and the row there.
func (j *joined) place(k, row int) (part, rowThere int) {
	bases := j.firsts(k)
	next, _ := slices.BinarySearch(bases, row+1)
	return next - 1, row - bases[next-1]
}

// Verify implements model.Reader: the parts are verified one by one.
func (j *joined) Verify(context.Context, *model.Report) error { return nil }

// Bytes implements model.Reader. The parts count by themselves.
func (j *joined) Bytes() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return 8 * int64(len(j.bases)*(len(j.parts)+1))
}

// tables concatenates a table of each part; nil is a missing one. bases has the first row of each, and the number of
// rows. It warns about columns that some tables lack. name is theirs in the warning. If chosen is set, such columns are
// neither reported nor an error.
func (j *joined) tables(ctx context.Context, name string, chosen bool,
	get func(ctx context.Context, p *model.Container) (*tables.Table, error),
) (t *tables.Table, bases []int, err error) {
	parts, uris := make([]*tables.Table, len(j.parts)), make([]string, len(j.parts))
	err = each.Of(ctx, int64(len(parts)), openAtOnce, func(ctx context.Context, i int64) (err error) {
		uris[i] = j.parts[i].URI
		parts[i], err = get(ctx, j.parts[i])
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	bases = make([]int, len(parts)+1)
	for i, table := range parts {
		bases[i+1] = bases[i]
		if table != nil {
			bases[i+1] += table.Len()
		}
	}
	if n := bases[len(parts)]; n > math.MaxInt32 { // rows are numbered in int32
		return nil, nil, fault.WithFile(fault.New(fault.Limit, name, "%d rows in %d containers", n, len(parts)),
			j.container.URI)
	}
	mode := j.mode
	if chosen && mode == column.Strict {
		mode = column.Intersection
	}
	t, err = tables.Concat(slices.DeleteFunc(slices.Clone(parts), func(t *tables.Table) bool { return t == nil }), mode)
	if err != nil {
		return nil, nil, fault.WithFile(fault.WithPart(err, name, fault.NoOffset), j.container.URI)
	}
	messages := tables.JoinedAsStrings(t, parts, uris)
	if !chosen {
		messages = append(tables.Missing(parts, uris, mode), messages...)
	}
	for _, m := range messages {
		j.warn(name + ": " + m)
	}
	return t, bases, nil
}

// withSource adds SourceColumn to a table of all parts, unless they have it.
func (j *joined) withSource(t *tables.Table, bases []int) *tables.Table {
	if t.Index(SourceColumn) >= 0 {
		return t
	}
	cols := []tables.Column{{Name: SourceColumn, Type: tables.Strings}}
	return tables.Join(t, tables.New(t.Len(), cols, func(context.Context, int) (*tables.Vector, error) {
		names := make([]string, 0, t.Len())
		for i, p := range j.parts {
			name := source.Name(strings.TrimRight(p.URI, "/"))
			names = append(names, slices.Repeat([]string{name}, bases[i+1]-bases[i])...)
		}
		return tables.NewStrings(names, nil), nil
	}))
}
