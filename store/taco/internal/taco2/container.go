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
	"github.com/chaski-eo/chaski/source/zipdir"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// MetaName is the name of a folder's own table of children.
const MetaName = "__meta__"

// reader is a model.Reader of TACO 2.
type reader struct {
	container *model.Container
	coll      *Collection
	places    []model.Place // of the tables
	collAt    span          // the place of COLLECTION.json in a ZIP
	levels    []*levelTable
	// sources are the names of the source files of a catalog, and numbers the places of names in it. The first is "",
	// the container itself.
	sources []string
	numbers map[string]int32
}

// levelTable is a level with the values derived from its table.
type levelTable struct {
	model.Level
	model.Places
	types   *tables.Vector
	numbers []int32 // of the source file of each row; nil outside catalogs
	trusted bool    // the offsets and sizes, or spans, were checked
}

func newReader(c *model.Container) *reader {
	return &reader{container: c, sources: []string{""}, numbers: map[string]int32{"": 0}}
}

const (
	// maxAhead limits a COLLECTION.json that is read together with what follows it.
	maxAhead = 4 << 20
	// maxEnd limits an end of a ZIP that is read at once for the tables in it. 1 MiB has the tables and the directory
	// of 15,000 samples. At 20 MB/s it takes 50 ms, half of a round trip to a store at that rate.
	maxEnd = 1 << 20
)

// OpenZIP opens a ZIP. If COLLECTION.json is small, the directory behind it is read in the same request, because it is
// needed if the offsets in the tables may be wrong, and so are tables near the end.
func OpenZIP(ctx context.Context, c *model.Container) error {
	levels, collection, err := parseHeader(c.From.Head, c.Object.Size)
	if err != nil {
		return err
	}
	start := c.Object.Size
	if collection.Size <= maxAhead && c.Object.Size-collection.End() <= zipdir.MaxTail {
		start = collection.Off
	}
	for _, s := range append(levels, collection) {
		if c.Object.Size-s.Off <= maxEnd {
			start = min(start, s.Off)
		}
	}
	if start < c.Object.Size {
		tail, err := model.ReadTail(ctx, c.From.File, start)
		if err != nil {
			return fault.WithPart(err, model.CollectionName, 0)
		}
		c.Hold(tail)
	}
	return newReader(c).inFile(ctx, levels, collection)
}

// OpenTacocat opens a __TACOCAT__ file.
func OpenTacocat(ctx context.Context, c *model.Container) error {
	levels, collection, err := parseTacocat(c.From.Head, c.Object.Size)
	if err != nil {
		return err
	}
	return newReader(c).inFile(ctx, levels, collection)
}

// inFile opens a container whose levels and COLLECTION.json are ranges of one file.
func (c *reader) inFile(ctx context.Context, levels []span, collection span) error {
	c.collAt = collection
	for _, s := range levels {
		c.places = append(c.places, model.Place{URI: c.container.URI, Span: s})
	}
	return c.open(ctx, model.Place{URI: c.container.URI, Span: collection})
}

// open reads the COLLECTION.json at a place.
func (c *reader) open(ctx context.Context, collection model.Place) error {
	file, extent, err := c.container.Locate(ctx, collection)
	if err == nil {
		c.coll, err = readCollection(ctx, file, extent, model.CollectionName)
	}
	if err != nil {
		return err
	}
	c.container.Document, c.container.Tree = c.coll.Raw, c.coll.Tree
	if c.places == nil {
		err = c.listLevels(ctx)
	}
	c.levels = make([]*levelTable, len(c.places))
	c.container.Open(c, len(c.places))
	return err
}

// OpenFolder opens a FOLDER, or a .tacocat directory.
func OpenFolder(ctx context.Context, c *model.Container) error {
	return newReader(c).open(ctx, model.Place{URI: source.Join(c.URI, model.CollectionName)})
}

// MaxLevels limits the levels of a directory to those that the header of a __TACOCAT__ has room for.
const MaxLevels = catLevels

// listLevels finds the tables of a directory.
func (c *reader) listLevels(ctx context.Context) error {
	known := 0 // the number of levels, if the collection has it
	if c.coll.Tree != nil {
		known = c.coll.Tree.Levels()
	}
	if known > MaxLevels {
		return fault.New(fault.Corrupt, "COLLECTION.json taco:pit_schema",
			"it has %d levels, at most %d are supported", known, MaxLevels)
	}
	folder := c.container.URI
	if c.container.Form == model.TacoFolder {
		folder = source.Join(folder, "METADATA")
	}
	for k := range MaxLevels {
		uri := source.Join(folder, model.LevelName(k)+".parquet")
		if _, err := c.container.File(ctx, uri); err != nil {
			if k > 0 && k >= known && fault.KindOf(err) == fault.NotFound {
				break
			}
			return err
		}
		c.places = append(c.places, model.Place{URI: uri})
	}
	return nil
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
	file, extent, err := c.container.Locate(ctx, c.places[k])
	if err != nil {
		return nil, err
	}
	table, err := model.ReadTable(ctx, file, extent, 0)
	if err != nil {
		return nil, c.inLevel(err, k)
	}
	l := &levelTable{Level: model.Level{Table: table}, Places: model.Places{Name: model.LevelName(k)}}
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
