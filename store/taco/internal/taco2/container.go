// Package taco2 reads TACO 2 containers: ZIP (by TACO_HEADER), FOLDER, and the catalogs of many ZIPs
// in one file (__TACOCAT__) or a directory (.tacocat), as the TACO specification 2.0.0 describes
// them and as the writers of both generations produce them.
//
// The tree is read from the consolidated tables of METADATA. Some writers gave rows below level 0 the offsets of other
// samples if the names of folders were not in byte order. If the order of names or offsets gives reason to doubt, the
// directory of the ZIP is read and trusted instead.
package taco2

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// MetaName is the name of a folder's own table of children.
const MetaName = "__meta__"

// place is the place of a table: a range of an object, or the whole object.
type place struct {
	uri  string
	span span // size 0: the whole object
}

// reader is a model.Reader of TACO 2.
type reader struct {
	container *model.Container
	coll      *Collection
	places    []place
	collAt    span // the place of COLLECTION.json in a ZIP
	levels    []*level
	// sources are the names of the source files of a catalog, and numbers the places of names in it. The first is "",
	// the container itself.
	sources []string
	numbers map[string]int32
}

// level is a level with the values derived from its table.
type level struct {
	model.Level
	model.Places
	types   *tables.Vector
	numbers []int32 // of the source file of each row; nil outside catalogs
	trusted bool    // the offsets and sizes, or spans, were checked
}

// OpenZIP opens a ZIP.
func OpenZIP(ctx context.Context, from model.Source) (*model.Container, error) {
	c := &reader{container: model.New(from, model.ZIP)}
	levels, coll, err := parseHeader(from.Head, from.File.Size())
	if err == nil {
		var file source.Reader
		c.coll, file, err = readCollectionAhead(ctx, from.File, coll)
		c.container.Hold(file)
	}
	c.collAt = coll
	return c.located(levels, err)
}

// OpenTacocat opens a __TACOCAT__ file.
func OpenTacocat(ctx context.Context, from model.Source) (*model.Container, error) {
	c := &reader{container: model.New(from, model.TacocatFile)}
	levels, coll, err := parseTacocat(from.Head, from.File.Size())
	if err == nil {
		c.coll, err = readCollection(ctx, from.File, coll, "COLLECTION.json")
	}
	return c.located(levels, err)
}

// located finishes a container whose levels are ranges of one file.
func (c *reader) located(levels []span, err error) (*model.Container, error) {
	for _, s := range levels {
		c.places = append(c.places, place{c.container.URI, s})
	}
	return c.opened(err)
}

// opened finishes a container, or closes its files after an error.
func (c *reader) opened(err error) (*model.Container, error) {
	if err != nil {
		return nil, c.container.Failed(err)
	}
	c.levels, c.sources, c.numbers = make([]*level, len(c.places)), []string{""}, map[string]int32{"": 0}
	c.container.Document, c.container.Tree = c.coll.Raw, c.coll.Tree
	return c.container.Open(c, len(c.places)), nil
}

// OpenFolder opens a FOLDER.
func OpenFolder(ctx context.Context, from model.Source) (*model.Container, error) {
	c := &reader{container: model.New(from, model.TacoFolder)}
	return c.openFolder(ctx, source.Join(from.URI, "METADATA"))
}

// OpenTacocatFolder opens a .tacocat directory.
func OpenTacocatFolder(ctx context.Context, from model.Source) (*model.Container, error) {
	c := &reader{container: model.New(from, model.Tacocat)}
	return c.openFolder(ctx, from.URI)
}

// MaxLevels limits the levels of a directory to those that the header of a __TACOCAT__ has room for.
const MaxLevels = catLevels

func (c *reader) openFolder(ctx context.Context, tables string) (*model.Container, error) {
	r, err := c.container.File(ctx, source.Join(c.container.URI, "COLLECTION.json"))
	if err == nil {
		c.coll, err = readCollection(ctx, r, span{Off: 0, Size: r.Size()}, "COLLECTION.json")
	}
	if err != nil {
		return c.opened(err)
	}
	known := 0 // the number of levels, if the collection has it
	if c.coll.Tree != nil {
		known = c.coll.Tree.Levels()
	}
	if known > MaxLevels {
		return c.opened(fault.New(fault.Corrupt, "COLLECTION.json taco:pit_schema", fault.NoOffset,
			"it has %d levels, at most %d are supported", known, MaxLevels))
	}
	for k := range MaxLevels {
		uri := source.Join(tables, model.LevelName(k)+".parquet")
		if _, err := c.container.File(ctx, uri); err != nil {
			if k > 0 && k >= known && fault.KindOf(err) == fault.NotFound {
				break
			}
			return c.opened(err)
		}
		c.places = append(c.places, place{uri: uri})
	}
	return c.opened(nil)
}

// Bytes implements model.Reader.
func (c *reader) Bytes() (n int64) {
	for _, l := range c.levels {
		if l != nil {
			n += 16*int64(cap(l.Spans)) + 4*int64(cap(l.numbers))
		}
	}
	return n
}

// inLevel adds the level and the file to an error.
func (c *reader) inLevel(err error, k int) error {
	return fault.WithFile(fault.WithPart(err, model.LevelName(k), 0), c.container.URI)
}

// Level implements model.Reader.
func (c *reader) Level(ctx context.Context, k int) (*model.Level, error) {
	place := c.places[k]
	file, err := c.container.File(ctx, place.uri)
	if err != nil {
		return nil, err
	}
	if place.span.Size == 0 {
		place.span.Size = file.Size()
	}
	table, err := model.ReadTable(ctx, file, place.span, 0)
	if err != nil {
		return nil, c.inLevel(err, k)
	}
	l := &level{Level: model.Level{Table: table}, Places: model.Places{Name: model.LevelName(k)}}
	wants := []model.Want{{To: &l.IDs, Name: model.ColumnID, Kind: tables.String},
		{To: &l.types, Name: model.ColumnType, Kind: tables.String}}
	if c.container.Form == model.ZIP {
		l.Places.First = int64(zipDataAt)
	}
	if c.container.Form.Indexes() {
		wants = append(wants, model.Want{To: &l.Sources, Name: model.ColumnSource, Kind: tables.String})
	}
	if err := model.Columns(ctx, table, wants...); err != nil {
		return nil, c.inLevel(err, k)
	}
	if l.Sources != nil {
		c.number(l)
	}
	c.levels[k] = l
	return &l.Level, nil
}
