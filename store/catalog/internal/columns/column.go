// Package columns reads the columns of the tables that datasets are made of: Parquet and CSV files, and listings.
package columns

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables/paged"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/source"
)

// Column is a column of a table.
type Column = column.Column

// Stored is a column of Parquet files, without lists.
type Stored struct {
	*Column
	table  *Table
	leaves []leaf // by file
}

// place returns where the value of a row is.
func (c *Stored) place(row int64) (in *leaf, fileRow int64) {
	file, fileRow := c.table.find(row)
	return &c.leaves[file], fileRow
}

// Part visits the cells of rows lo to hi, hi not included, of a table that is one file, in less time than one by one.
func (c *Stored) Part(ctx context.Context, lo, hi int64, visit column.Visit) error {
	if !c.Kind.IsList() {
		rows := paged.Scan{Rows: paged.Spans{{Lo: lo, Hi: hi}}, Keep: true}
		return c.leaves[0].scanRows(ctx, rows, lo, visit)
	}
	for row := lo; row < hi; row++ {
		v, err := c.Cell(ctx, row)
		if err == nil {
			err = visit(row, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Sizes returns how many bytes each row group of a Parquet file stores of the column.
func (c *Stored) Sizes() (sizes []int64) {
	for i := range c.leaves {
		for group := range c.leaves[i].Groups {
			sizes = append(sizes, c.leaves[i].File.Stored(group, c.leaves[i].number))
		}
	}
	return sizes
}

// PageBytes returns the stored bytes that a read of one row of a Parquet file takes at most, where other rows share
// them: of the first row group, which stands for all.
func (c *Stored) PageBytes(ctx context.Context) (int64, error) {
	first := &c.leaves[0]
	largest, err := first.LargestPage(ctx, first.number)
	return largest, fault.WithFile(err, first.Name)
}

// Extent returns the bytes of the file with the value of a row. ok is false if they are not known.
func (c *Stored) Extent(ctx context.Context, row int64) (file string, at source.Range, ok bool) {
	leaf, in := c.place(row)
	off, n, err := leaf.Extent(ctx, leaf.number, in)
	return leaf.Name, source.Range{Off: off, Len: n}, err == nil && n > 0
}

// Announce says that the cell of a row is read soon, after those that were announced before, until the caller calls
// over: when another row of a heavy page is read, a copy of the cell is kept for that.
func (c *Stored) Announce(row int64) (over func()) {
	leaf, in := c.place(row)
	return leaf.Announce(leaf.number, in)
}

// AnnounceTo is Announce for a counter of the table's files.
func (c *Stored) AnnounceTo(counter *paged.Counter, row int64) (over func()) {
	leaf, in := c.place(row)
	return counter.Announce(leaf.File.File, leaf.number, in)
}

// Count counts what Cell reads. It reads where pages are alone.
func (c *Stored) Count(ctx context.Context, counter *paged.Counter, row int64) (paged.Reads, error) {
	leaf, in := c.place(row)
	reads, err := counter.Read(ctx, leaf.File.File, leaf.number, in)
	return reads, fault.WithFile(err, leaf.Name)
}

// Folders returns the column of the names of the folders that hold the files of a column of paths or URIs: "forest"
// of "eurosat/forest/1.tif", "" of "1.tif".
func Folders(paths *Column) *Column {
	return column.Map(paths, func(_ int64, c column.Value) column.Value {
		c.Text = texts.FolderOf(c.Text)
		return c
	})
}

// maxRows bounds the rows of a dataset: a few bytes of a Parquet file can claim millions of rows, and the fingerprint
// visits each.
const maxRows = 1 << 32

// CheckRows refuses more rows than maxRows.
func CheckRows(n int64) error {
	if n > maxRows {
		return fault.New(fault.Limit, "dataset", "%d rows, at most %d", n, int64(maxRows))
	}
	return nil
}
