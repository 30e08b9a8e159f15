package taco3

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// metadataName is the one entry that the index of a Flat archive lists: a Parquet table with a row for each file.
const metadataName = "__metadata__"

// flatReader is a model.Reader of a cozip of profile Flat: files with a table of their names, places and metadata. It
// has one level, whose rows are the files.
type flatReader struct {
	model.Places
	container *model.Container
	tbl       *tables.Table
	names     *tables.Vector
}

// openFlat reads the table of a Flat archive.
func openFlat(ctx context.Context, of *model.Container, x *zipIndex) error {
	archive := &flatReader{container: of, Places: model.Places{Name: metadataName, First: indexAt}}
	of.Form, of.IDColumn = model.Flat, "name"
	of.Named = &model.Named{Names: []string{"sample"}, Rows: archive.rows, Wide: archive.wide}
	if err := archive.read(ctx, x); err != nil {
		return err
	}
	of.Open(archive, 1)
	return nil
}

func (f *flatReader) read(ctx context.Context, x *zipIndex) error {
	file, err := f.container.File(ctx, f.container.URI)
	if err != nil {
		return err
	}
	place, ok := x.spans[metadataName]
	if !ok || len(x.names) != 1 {
		return fault.At(fault.Corrupt, indexPart, indexAt, "of profile Flat must list %s alone", metadataName)
	}
	table, err := model.ReadTable(ctx, file, place, 0)
	if err != nil {
		return fault.WithPart(err, metadataName, 0)
	}
	f.tbl = table
	return fault.WithPart(model.Columns(ctx, table, model.Want{To: &f.names, Name: "name", Kind: tables.String},
		model.Want{To: &f.Offsets, Name: "offset", Kind: tables.Uint64},
		model.Want{To: &f.Sizes, Name: "size", Kind: tables.Uint64}), metadataName, 0)
}

// Bytes implements model.Reader.
func (f *flatReader) Bytes() int64 { return 0 }

// Parents implements model.Reader: there is no level below 0.
func (f *flatReader) Parents(context.Context, int) ([]int32, error) { return nil, nil }

// Level implements model.Reader.
func (f *flatReader) Level(context.Context, int) (*model.Level, error) {
	return &model.Level{Table: f.tbl, IDs: f.names}, nil
}

// Entry implements model.Reader.
func (f *flatReader) Entry(_ context.Context, _, row int) (store.Entry, error) {
	e := store.Entry{ID: f.names.Str(row)}
	if f.names.Null(row) {
		return e, f.container.InTable(metadataName, row, "name is null")
	}
	err := f.container.Place(&f.Places, row, &e)
	return e, err
}

// rows implements model.Named.
func (f *flatReader) rows(_ context.Context, name string) (t *tables.Table, level, first int, err error) {
	if name != "sample" {
		err = fault.WithFile(fault.New(fault.NotFound, "level", "no level %.80q: there is sample",
			name), f.container.URI)
	}
	return f.tbl, 0, 0, err
}

// wide implements model.Named: the table has the places already.
func (f *flatReader) wide(context.Context, int, func(string) string) (*tables.Table, error) {
	return f.tbl, nil
}
