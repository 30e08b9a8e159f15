package taco3

import (
	"context"
	"math"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// read reads the tables of the depths down to one.
func (c *reader) read(ctx context.Context, depth int) error {
	for _, levels := range c.byDepth[:depth+1] {
		rows := 0
		for _, level := range levels {
			if level.tbl == nil {
				if err := c.readLevel(ctx, level); err != nil {
					return fault.WithFile(fault.WithPart(err, level.name, 0), c.container.URI)
				}
			}
			level.base = rows
			rows += level.tbl.Len()
		}
		if rows > math.MaxInt32 {
			return fault.WithFile(fault.New(fault.Limit, "level", "has %d rows: at most %d", rows,
				math.MaxInt32), c.container.URI)
		}
	}
	return nil
}

// readLevel reads the table of a level and what its rows have to do with those above.
func (c *reader) readLevel(ctx context.Context, l *levelTable) error {
	table, err := c.readTable(ctx, l)
	if err != nil {
		return err
	}
	l.tbl = table
	if err := c.columns(ctx, l); err != nil {
		l.tbl = nil
		return err
	}
	return nil
}

func (c *reader) readTable(ctx context.Context, l *levelTable) (*tables.Table, error) {
	place := model.Place{URI: c.container.URI}
	switch c.container.Form {
	case model.CozipFolder:
		place.URI = source.Join(place.URI, l.entry())
	case model.CozipCatalog:
		place.URI = source.Join(place.URI, TableName(l.name))
	default:
		place.Span = c.index.spans[l.entry()]
	}
	// Locate keeps the file open, because the table is read when its columns are asked for.
	file, extent, err := c.container.Locate(ctx, place)
	if err != nil {
		return nil, err
	}
	return model.ReadTable(ctx, file, extent, 0)
}

// columns reads the columns of places, and checks what other rows are found by.
func (c *reader) columns(ctx context.Context, l *levelTable) error {
	var parents *tables.Vector
	wants := []model.Want{{To: &l.names, Name: model.ColumnID, Kind: tables.String}}
	if l.above != nil {
		wants = []model.Want{{To: &l.paths, Name: model.ColumnRelative, Kind: tables.String},
			{To: &parents, Name: model.ColumnParent, Kind: tables.Uint64}}
		if c.container.Form != model.CozipFolder {
			wants = append(wants, l.At(tables.Uint64)...)
		}
	}
	if c.container.Form == model.CozipCatalog {
		wants = append(wants, model.Want{To: &l.Sources, Name: model.ColumnSource, Kind: tables.String})
	}
	if err := model.Columns(ctx, l.tbl, wants...); err != nil || l.above == nil {
		return err
	}
	l.ids = make([]string, l.tbl.Len())
	// A few names stand in all samples, so each is kept once.
	names := map[string]string{}
	for i := range l.ids {
		p := l.paths.Bytes(i)
		if l.paths.Null(i) {
			return corrupt("column "+model.ColumnRelative, "is null in row %d", i)
		}
		name := p[strings.LastIndexByte(string(p), '/')+1:]
		id, ok := names[string(name)]
		if !ok {
			id = string(name)
			names[id] = id
		}
		l.ids[i] = id
	}
	above := uint64(l.above.tbl.Len())
	l.parents = make([]int32, l.tbl.Len())
	for i := range l.parents {
		p := uint64(parents.Int(i))
		if parents.Null(i) || p >= above {
			return corrupt("column "+model.ColumnParent, "row %d has the parent %d: the level above has %d rows", i, p,
				above)
		}
		l.parents[i] = int32(p)
	}
	return nil
}

// maxNamed bounds the files of a sequence that can be named without their extension.
const maxNamed = 1 << 10

// filePaths returns the paths of files that every sample has. A file of a sequence counts if its number is below the
// minimum.
func (c *reader) filePaths() (paths []string) {
	for i := range c.coll.structure.items {
		it := &c.coll.structure.items[i]
		for n := range min(max(it.Least, 1), maxNamed) {
			paths = append(paths, strings.TrimPrefix(it.Folder+"/"+it.file(n), "/"))
			if len(paths) == maxItems {
				return paths
			}
		}
	}
	return paths
}

// sequence returns the sequence that a name means. A name is an entry of taco:structure, as it is or without the bounds
// ("before/t*.tif"), or what stands in front of the number ("before/t"), if no file is called so. "image", the name of
// a field that nobody named, means the only entry, too.
func (c *reader) sequence(ctx context.Context, name string) (*store.Sequence, error) {
	item := c.coll.structure.sequence(name)
	if item == nil {
		return nil, nil
	}
	unlock, err := c.container.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	level := c.itemLevel(item)
	if err := c.read(ctx, level.depth); err != nil {
		return nil, err
	}
	unbounded := *item
	// Without the bound: files over it must be found.
	unbounded.Most = math.MaxInt
	sequence := &store.Sequence{Most: item.Most, Level: level.depth, Rows: c.rowsOf(level, &unbounded)}
	for sample, rows := range sequence.Rows {
		for k, row := range rows {
			if k >= item.Most || unbounded.Number(level.ids[row]) != k {
				sequence.Rows[sample] = nil
			}
			rows[k] = level.base + row
		}
	}
	return sequence, nil
}

// rows implements model.Named.
func (c *reader) rows(ctx context.Context, name string) (t *tables.Table, depth, first int, err error) {
	unlock, err := c.container.Lock(ctx)
	if err != nil {
		return nil, 0, 0, err
	}
	defer unlock()
	for _, level := range c.levels {
		if level.name == name {
			err = c.read(ctx, level.depth)
			return level.tbl, level.depth, level.base, err
		}
	}
	return nil, 0, 0, fault.WithFile(fault.New(fault.NotFound, "level",
		"no level %.80q: the levels are %s", name, strings.Join(c.coll.structure.Levels, ", ")), c.container.URI)
}
