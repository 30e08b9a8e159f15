package taco3

import (
	"context"
	"errors"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// metadataName is the one entry that the index of a Flat archive lists: a Parquet table with a row for each file.
const metadataName = "__metadata__"

// Flat is a cozip of profile Flat: files with a table of their names, places and metadata. It implements
// model.Container with one level, whose rows are the files.
type Flat struct {
	model.Common
	object                source.Known
	reader                source.Reader
	tbl                   *tables.Table
	names, offsets, sizes *tables.Vector
}

// openFlat reads the table of a Flat archive. It closes r if it fails.
func openFlat(ctx context.Context, uri string, r source.Reader, object source.Known, x *index,
	l model.Limits) (model.Container, error) {
	flat := &Flat{Common: model.Common{Source: uri, Name: "cozip (Flat)", Key: "name"}, object: object, reader: r}
	if err := flat.read(ctx, x, l); err != nil {
		return nil, errors.Join(fault.WithFile(err, uri), r.Close())
	}
	return flat, nil
}

func (f *Flat) read(ctx context.Context, x *index, l model.Limits) error {
	place, ok := x.spans[metadataName]
	if !ok || len(x.names) != 1 {
		return fault.New(fault.Corrupt, indexPart, indexAt, "of profile Flat must list %s alone", metadataName)
	}
	table, err := model.ReadTable(ctx, f.reader, place, l)
	if err != nil {
		return fault.WithPart(err, metadataName, 0)
	}
	f.tbl = table
	for _, c := range []struct {
		name string
		kind tables.Kind
		v    **tables.Vector
	}{{"name", tables.String, &f.names}, {"offset", tables.Uint64, &f.offsets}, {"size", tables.Uint64, &f.sizes}} {
		if *c.v, err = model.Column(ctx, table, c.name, c.kind); err != nil {
			return fault.WithPart(err, metadataName, 0)
		}
	}
	return nil
}

// Levels implements model.Container.
func (f *Flat) Levels() int { return 1 }

// Close implements model.Container.
func (f *Flat) Close() error { return f.reader.Close() }

// Bytes implements model.Container.
func (f *Flat) Bytes() int64 { return f.tbl.Bytes() }

// Named implements model.Container.
func (f *Flat) Named() model.Named { return f }

// Parents implements model.Container.
func (f *Flat) Parents(context.Context, int) ([]int32, error) { return nil, nil }

// Children implements model.Container.
func (f *Flat) Children(context.Context, int, int) ([]int32, error) { return nil, nil }

// Table implements model.Container.
func (f *Flat) Table(_ context.Context, level int) (*tables.Table, error) {
	if level != 0 {
		return nil, f.NoRow(level, -1, 1)
	}
	return f.tbl, nil
}

// Entry implements model.Container.
func (f *Flat) Entry(_ context.Context, level, row int) (model.Entry, error) {
	if level != 0 || row < 0 || row >= f.tbl.Len() {
		return model.Entry{}, f.NoRow(level, row, 1)
	}
	entry := model.Entry{ID: f.names.Str(row), URI: f.Source, Object: f.object, Offset: f.offsets.Int(row),
		Size: f.sizes.Int(row), Row: row}
	null := f.names.Null(row) || f.offsets.Null(row) || f.sizes.Null(row)
	past := entry.Offset > f.object.Size || entry.Size > f.object.Size-entry.Offset
	if null || past || entry.Offset < indexAt || entry.Size < 0 {
		return entry, fault.WithFile(corrupt(metadataName+" row "+strconv.Itoa(row),
			"%.80q has %d bytes at %d: the file has %d", entry.ID, uint64(entry.Size), uint64(entry.Offset),
			f.object.Size), f.Source)
	}
	return entry, nil
}

// Names implements model.Named.
func (f *Flat) Names() []string { return []string{"sample"} }

// Files implements model.Named: a sample is a file.
func (f *Flat) Files() []string { return nil }

// Sequence implements model.Named: there is none.
func (f *Flat) Sequence(context.Context, string) (*model.Sequence, error) { return nil, nil }

// NamedRows implements model.Named.
func (f *Flat) NamedRows(_ context.Context, name string) (t *tables.Table, level, first int, err error) {
	if name != "sample" {
		err = fault.WithFile(fault.New(fault.NotFound, "level", fault.NoOffset, "no level %.80q: there is sample",
			name), f.Source)
	}
	return f.tbl, 0, 0, err
}

// Wide implements model.Named: the table has the places already.
func (f *Flat) Wide(context.Context, int, func(string) string) (*tables.Table, error) {
	return f.tbl, nil
}
