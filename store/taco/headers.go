package taco

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/store/catalog"
)

// headerColumns are the columns in which a table may hold the chunk indexes of its rasters.
var headerColumns = []string{"chaski:index", "rumi:header"}

// Headers are the columns of a table that say what the headers of its rasters do, which are then not opened.
type Headers struct {
	indexes []*tables.Vector // the first that is not null counts
	names   *tables.Vector   // of the bands, or nil
	parser  catalog.NamesParser
}

// Headers returns the headers in the table of a level, or nil if it has none. column names the one with the indexes,
// which must then exist and hold blobs; "" means those that containers have.
func (d *Dataset) Headers(ctx context.Context, level int, column string) (*Headers, error) {
	t, err := d.Level(ctx, level)
	if err != nil {
		return nil, err
	}
	headers, names := &Headers{}, headerColumns
	if column != "" {
		names = []string{column}
	}
	for _, name := range names {
		if column == "" && t.Index(name) < 0 {
			continue
		}
		values, err := t.Column(ctx, name)
		if err != nil {
			return nil, err
		}
		if values.Kind() == tables.Binary {
			headers.indexes = append(headers.indexes, values)
		} else if column != "" {
			return nil, fault.New(fault.Unsupported, "column "+name,
				"holds values of type %v, not blobs", values.Type())
		}
	}
	if len(headers.indexes) == 0 {
		return nil, nil
	}
	if t.Index(catalog.NamesColumn) < 0 {
		return headers, nil
	}
	v, err := t.Column(ctx, catalog.NamesColumn)
	if err != nil {
		return nil, err
	}
	if v.Kind() == tables.String { // a column of another type is somebody else's
		headers.names = v
	}
	return headers, nil
}

// Of returns the chunk index of the raster in a row, with offsets from its start, and the names of its bands. The
// index is nil if the row has none.
func (h *Headers) Of(row, maxChunk int) (x *chunk.Index, names []string, err error) {
	if h == nil {
		return nil, nil, nil
	}
	for _, values := range h.indexes {
		if values.Null(row) || len(values.Bytes(row)) == 0 {
			continue
		}
		x, err = catalog.ParseIndex(values.Bytes(row), maxChunk)
		if err == nil && h.names != nil && !h.names.Null(row) && len(h.names.Bytes(row)) > 0 {
			names, err = h.parser.Parse(int64(row), h.names.Bytes(row), x.StepBands())
		}
		return x, names, err
	}
	return nil, nil, nil
}
