package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
)

// cellRasters are the columns of rasters that stand in the cells of a table: a column of bytes of a Parquet file, or
// Hugging Face's feature Image, a struct of the bytes and a path, or a column of lists of samples. A row whose bytes
// are null has its raster in the file at the path.
type cellRasters struct {
	table  *columns.Table
	column string          // the name of the field's column, or of its struct
	bytes  *columns.Column // opaque
	stored *columns.Stored // the column in Parquet files, or nil
	sizes  func() []int64  // of what files store, as the fingerprint has them; nil of lists in memory
	lists  *columns.Column // the lists that the bytes are made of, or nil
	paths  *columns.Column // or nil
	rows   int64
}

// Members of the struct that is an Image.
const (
	BytesMember = ".bytes"
	pathMember  = ".path"
)

// cellsOf returns the columns of the rasters in the cells of a column, or nil if it holds paths or values. A struct of
// bytes and paths that has no raster is fault.Unsupported.
func cellsOf(ctx context.Context, tab *columns.Table, name string) (*cellRasters, error) {
	c := &cellRasters{table: tab, column: strings.TrimSuffix(name, BytesMember), rows: tab.Rows()}
	var err error
	flat := true
	switch {
	case tab.OfRecords():
		if c.bytes, err = tab.Column(name); err != nil || !c.bytes.Bytes {
			return nil, nil //nolint:nilerr // the caller says what is missing
		}
		c.sizes = tab.Sizes
		return c.ifRasters(ctx, tab, name, true)
	case tab.Files == nil:
		return nil, nil
	}
	if c.stored, err = tab.Stored(name); err != nil {
		flat = false
		if c.stored, err = tab.Stored(name + BytesMember); err != nil {
			return nil, nil // the caller says what is missing
		}
	}
	if c.bytes = c.stored.Column; !c.bytes.Bytes || c.bytes.Kind.IsList() {
		return nil, nil
	}
	c.sizes = c.stored.Sizes
	return c.ifRasters(ctx, tab, name, flat)
}

// ifRasters returns the columns if their bytes are rasters. flat says that they are not in a struct.
func (c *cellRasters) ifRasters(ctx context.Context, tab *columns.Table, name string, flat bool) (*cellRasters, error) {
	if paths, err := tab.Column(c.column + pathMember); err == nil && paths.Kind == Text {
		c.paths = paths
	}
	head, err := firstBytes(ctx, c.bytes)
	switch {
	case err != nil:
		return nil, err
	case head == nil && c.paths != nil, magic.Of(head).Class.Pixels():
		return c, nil
	case flat:
		// Bytes may be paths that are not marked as strings, so the caller decides.
		return nil, nil
	}
	return nil, notRaster("column "+name, fault.NoOffset, head)
}

// notRaster returns the error for bytes that begin like no raster. part and off say where they stand.
func notRaster(part string, off int64, head []byte) error {
	name := magic.OfBytes(head)
	if name == "" {
		name = fmt.Sprintf("%q", head[:min(len(head), 4)])
	}
	return fault.At(fault.Unsupported, part, off,
		"its bytes are not a TIFF, PNG, JPEG, NumPy or rumi file, they begin like %s", name)
}

// errStop ends a scan.
var errStop = errors.New("catalog: stop")

// firstBytes returns the head of the first value of a column that is not null, or nil if all are.
func firstBytes(ctx context.Context, c *columns.Column) (head []byte, err error) {
	if c.Rows > 0 { // mostly the first has one, whose page may be of 22 MB: the cache keeps that for the first sample
		first, err := c.Cell(ctx, 0)
		if err != nil || !first.Null {
			return bytes.Clone(first.Text[:min(len(first.Text), magic.Head)]), err
		}
	}
	err = c.Scan(ctx, func(_ int64, v Value) error {
		if v.Null {
			return nil
		}
		head = bytes.Clone(v.Text[:min(len(v.Text), magic.Head)])
		return errStop
	})
	if err == errStop {
		err = nil
	}
	return head, err
}

// names returns the column of the names of the rasters: their paths, or cellName of a row whose path is null or empty.
func (c *cellRasters) names() *columns.Column {
	paths := c.paths
	if paths == nil {
		// Not the column of bytes, which a scan would read.
		paths = column.Nulls(c.rows)
	}
	return column.Map(paths, func(row int64, path Value) Value {
		if path.Null || len(path.Text) == 0 {
			return Value{Text: []byte(cellName(row, c.column))}
		}
		return path
	})
}

// paged reports whether the rasters are read by pages of bytes.
func (c *cellRasters) paged() bool { return c != nil && c.stored != nil && c.lists == nil }

// size returns how many bytes the files store of the rasters, 0 of others.
func (c *cellRasters) size() (total int64) {
	if !c.paged() {
		return 0
	}
	for _, n := range c.sizes() {
		total += n
	}
	return total
}

// cellName returns the name of a raster in a cell: ROW/COLUMN.
func cellName(row int64, column string) string { return strconv.FormatInt(row, 10) + "/" + column }

// ImageColumns returns the columns of a Parquet file whose cells hold the bytes of rasters.
func ImageColumns(ctx context.Context, tab *columns.Table) (names []string, err error) {
	for _, name := range tab.Fields() {
		c, err := cellsOf(ctx, tab, name)
		if err != nil && fault.KindOf(err) != fault.Unsupported {
			return nil, err
		}
		if c != nil {
			names = append(names, name)
		}
	}
	return names, nil
}
