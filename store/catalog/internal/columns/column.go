// Package columns reads the columns of the tables that datasets are made of: Parquet and CSV files, and listings.
package columns

import (
	"context"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/paged"
	"github.com/chaski-eo/chaski/format/tables/texts"
)

// Column is one column of a table. It is safe for concurrent use.
type Column struct {
	Kind column.Kind
	// Unit is the unit of dates and timestamps, else 0.
	Unit time.Duration
	// Bytes says that the values may be strings although the file does not mark them so, and Opaque that
	// they are other bytes.
	Bytes, Opaque bool

	rows int64
	cell func(ctx context.Context, row int64) (column.Value, error)
	scan func(ctx context.Context, visit func(row int64, c column.Value) error) error // nil: cell by cell

	// Of columns of Parquet files, without lists, by file; and where the cell of a row is.
	leaves []leaf
	place  func(row int64) (in *leaf, fileRow int64)
}

// Cell returns a row's cell.
func (c *Column) Cell(ctx context.Context, row int64) (column.Value, error) { return c.cell(ctx, row) }

// Rows returns the number of rows.
func (c *Column) Rows() int64 { return c.rows }

// Scan visits the cells of all rows in order, without keeping them in a cache. An error of visit ends it and is
// returned.
func (c *Column) Scan(ctx context.Context, visit func(row int64, c column.Value) error) error {
	if c.scan != nil {
		return c.scan(ctx, visit)
	}
	for row := range c.rows {
		if row%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		cell, err := c.cell(ctx, row)
		if err == nil {
			err = visit(row, cell)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Stored returns how many bytes each row group of a Parquet file stores of the column.
func (c *Column) Stored() (sizes []int64) {
	for i := range c.leaves {
		for group := range c.leaves[i].Groups {
			sizes = append(sizes, c.leaves[i].File.Stored(group, c.leaves[i].number))
		}
	}
	return sizes
}

// PageBytes returns the stored bytes that a read of one row of a Parquet file takes at most, where other rows share
// them: of the first row group, which stands for all.
func (c *Column) PageBytes(ctx context.Context) (int64, error) {
	if c.leaves == nil {
		return 0, nil
	}
	first := &c.leaves[0]
	most, err := first.LargestPage(ctx, first.number)
	return most, fault.WithFile(err, first.Name)
}

// Announce says that the cell of a row is read soon, after those that were announced before, until the caller calls
// over: when another row of a heavy page is read, a copy of the cell is kept for that.
func (c *Column) Announce(row int64) (over func()) {
	if c.leaves == nil {
		return func() {}
	}
	leaf, in := c.place(row)
	return leaf.Announce(leaf.number, in)
}

// AnnounceTo is Announce for a counter of the table's files.
func (c *Column) AnnounceTo(counter *paged.Counter, row int64) (over func()) {
	leaf, in := c.place(row)
	return counter.Announce(leaf.File.File, leaf.number, in)
}

// Count counts what Cell reads. It reads where pages are alone.
func (c *Column) Count(ctx context.Context, counter *paged.Counter, row int64) (paged.Reads, error) {
	leaf, in := c.place(row)
	reads, err := counter.Read(ctx, leaf.File.File, leaf.number, in)
	return reads, fault.WithFile(err, leaf.Name)
}

// InMemory returns the column of integers, timestamps, floats or strings, or of lists of these, that are in memory.
func InMemory(values *tables.Vector) *Column {
	c := &Column{Kind: column.Int, rows: int64(values.Len())}
	set := func(cell *column.Value, i int) { cell.Int = values.Int(i) }
	switch values.Kind() {
	case tables.String:
		c.Kind, set = column.Text, func(cell *column.Value, i int) { cell.Text = values.Bytes(i) }
	case tables.Float64:
		c.Kind, set = column.Float, func(cell *column.Value, i int) { cell.Float = values.Float(i) }
	case tables.Timestamp:
		c.Unit = time.Microsecond
	case tables.List:
		heldLists(c, values)
		return c
	}
	c.cell = func(_ context.Context, row int64) (column.Value, error) {
		cell := column.Value{Null: values.Null(int(row))}
		if !cell.Null {
			set(&cell, int(row))
		}
		return cell, nil
	}
	return c
}

// Of returns the column of the values that are in memory otherwise.
func Of(kind column.Kind, unit time.Duration, rows int64, value func(row int64) column.Value) *Column {
	return &Column{Kind: kind, Unit: unit, rows: rows, cell: func(_ context.Context, row int64) (column.Value, error) {
		return value(row), nil
	}}
}

// Paths is the column of the paths of a listing.
func Paths(paths []string) *Column {
	return Of(column.Text, 0, int64(len(paths)), func(row int64) column.Value {
		return column.Value{Text: []byte(paths[row])}
	})
}

// Nulls is a column of so many rows without a value.
func Nulls(rows int64) *Column {
	return Of(column.Text, 0, rows, func(int64) column.Value { return column.Value{Null: true} })
}

// Map returns a column of strings: what convert returns for the cells of another column.
func Map(c *Column, convert func(row int64, c column.Value) column.Value) *Column {
	return &Column{
		Kind: column.Text, rows: c.rows,
		cell: func(ctx context.Context, row int64) (column.Value, error) {
			cell, err := c.Cell(ctx, row)
			return convert(row, cell), err
		},
		scan: func(ctx context.Context, visit func(int64, column.Value) error) error {
			return c.Scan(ctx, func(row int64, cell column.Value) error { return visit(row, convert(row, cell)) })
		},
	}
}

// Join returns a column of strings: what text returns for the cells of other columns with as many rows.
func Join(from []*Column, text func(cells []column.Value) column.Value) *Column {
	cell := func(ctx context.Context, row int64) (column.Value, error) {
		cells := make([]column.Value, len(from))
		for i, c := range from {
			var err error
			if cells[i], err = c.Cell(ctx, row); err != nil {
				return column.Value{}, err
			}
		}
		return text(cells), nil
	}
	return &Column{Kind: column.Text, rows: from[0].rows, cell: cell}
}

// Pick returns the rows at of a column, in their order, null for -1; the column itself of nil, and nil of no column.
func Pick(c *Column, at []int64) *Column {
	if c == nil || at == nil {
		return c
	}
	return &Column{Kind: c.Kind, Unit: c.Unit, rows: int64(len(at)),
		cell: func(ctx context.Context, row int64) (column.Value, error) {
			if at[row] < 0 {
				return column.Value{Null: true}, nil
			}
			return c.Cell(ctx, at[row])
		}}
}

// Folders returns the column of the names of the folders that hold the files of a column of paths or URIs: "forest"
// of "eurosat/forest/1.tif", "" of "1.tif".
func Folders(paths *Column) *Column {
	return Map(paths, func(_ int64, c column.Value) column.Value {
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
