package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
)

// ScanKeys visits the key of each sample, in order: what the sample is called whichever fields are read. It is the {id}
// of patterns, or all of their names joined by "/", and else the path in a listing or catalog. In other tables it is
// the id of a STAC item, or the path in the first column of files. Without a path it is "row N", the number of the row.
func (t *Table) ScanKeys(ctx context.Context, visit func(row int64, key string) error) error {
	keys := t.keys
	if keys == nil {
		var err error
		if keys, err = t.fileColumn(ctx); err != nil {
			return fault.WithFile(err, t.src)
		}
	}
	err := column.Pick(keys, t.order).Scan(ctx, func(row int64, c Value) error {
		key := string(c.Text)
		if c.Null || key == "" {
			key = rowName(tableRow(t.order, row))
		}
		return visit(row, t.named(key, row))
	})
	return fault.WithFile(err, t.src)
}

// fileColumn returns the ids of a table of STAC items, or the first column of a table whose first string names a file
// of pixels. Without one it returns a column of nulls.
func (t *Table) fileColumn(ctx context.Context) (*columns.Column, error) {
	tab, class := t.table, magic.Named(source.Name(t.src)).Class
	// A table of text has the columns of the fields alone, and the key must not depend on them.
	if class == magic.CSV || class == magic.Items {
		var err error
		tab, err = t.readText(ctx, func(name string) texts.Want {
			if slices.Contains(t.table.Names(), name) || class == magic.Items {
				return texts.Written
			}
			return texts.Skipped // also numbers of columns, which would say that there is no header
		})
		if err != nil {
			return nil, err
		}
	}
	names := tab.Names()
	if class == magic.Items {
		names = append([]string{"id"}, names...)
	}
	for _, name := range names {
		found, err := tab.Column(name)
		if err != nil || found.Kind != Text || found.Bytes || found.Opaque {
			continue
		}
		first := ""
		err = found.Scan(ctx, func(_ int64, c Value) error {
			if first = string(c.Text); first == "" {
				return nil
			}
			return errStop
		})
		if err != nil && !errors.Is(err, errStop) {
			return nil, err
		}
		if name == "id" && first != "" && names[0] == name || namesPixels(first) {
			return found, nil
		}
	}
	return column.Nulls(t.table.Rows()), nil
}

// namesPixels reports whether a string ends like a file of pixels, or is a place in one.
func namesPixels(text string) bool {
	if strings.Contains(text, "://") {
		text, _, _ = strings.Cut(text, "?") // the query of a signed URL
	}
	_, _, zarr := storeOf(text)
	_, _, member := source.Split(text)
	return zarr || member || source.IsRange(text) || magic.Named(text).Class.Pixels()
}
