package catalog

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// OpenCell returns the raster in a cell of a Parquet file by the name of its asset: ROW/COLUMN, or ROW for the column
// "image". Other names are fault.NotFound.
func OpenCell(ctx context.Context, o source.Opener, table, name string, maxChunk int) (a Asset, err error) {
	number, column, _ := strings.Cut(name, "/")
	row, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return a, fault.WithFile(fault.New(fault.NotFound, "sample "+name, fault.NoOffset,
			"rasters of a table are called ROW/COLUMN, such as 0/%s", defaultField), table)
	}
	source := Source{Field: cmp.Or(column, defaultField)}
	t, err := Open(ctx, table, []Source{source}, Options{Opener: o, MaxChunk: maxChunk})
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	switch {
	case t.Kind(0) != Raster:
		return a, fault.WithFile(fault.New(fault.Unsupported, "column "+source.Field, fault.NoOffset,
			"holds no rasters"), table)
	case row < 0 || row >= t.Len():
		return a, fault.WithFile(fault.New(fault.NotFound, "sample "+name, fault.NoOffset, "there are %d rows",
			t.Len()), table)
	}
	return t.Asset(ctx, 0, row)
}
