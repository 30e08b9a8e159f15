package build

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
	"github.com/chaski-eo/chaski/tables/encode"
)

// openTable opens a table. Columns of a CSV file that raw names stay strings.
func openTable(ctx context.Context, opener source.Opener, name string, raw ...string) (*columns.Table, error) {
	file, err := columns.OpenFile(ctx, opener, name)
	if err != nil {
		return nil, err
	}
	if catalog.IsParquet(name) {
		t, err := columns.OpenParquet(ctx, file, 32<<20)
		if err != nil {
			_ = file.Close()
		}
		return t, err
	}
	defer func() { _ = file.Close() }()
	return columns.OpenText(ctx, file, name, nil, raw...)
}

// maxAdded bounds the columns of a table that a catalog takes: each has buffers of its own in the writer.
const maxAdded = 1000

// added are the columns of a table that a catalog has beside the columns about its files.
type added struct {
	table  string // its name, for errors
	cols   []*columns.Column
	fields []parquet.Field
}

// add adds a column. own are the names that the row has.
func (a *added) add(name string, c *columns.Column, own map[string]bool) error {
	if own[name] {
		return fault.New(fault.Unsupported, "column "+name, fault.NoOffset,
			"a catalog already has a column of this name")
	}
	if len(a.cols) == maxAdded {
		return fault.New(fault.Limit, "table", fault.NoOffset, "over %d columns", maxAdded)
	}
	if err := columnName(name); err != nil {
		return err
	}
	own[name] = true
	node := parquet.Optional(parquet.Compressed(parquet.Encoded(nodeOf(c), &parquet.Plain), &parquet.Zstd))
	a.cols, a.fields = append(a.cols, c), append(a.fields, encode.Field(name, node))
	return nil
}

// append appends the values of a row of the table, whose columns have the numbers from first on in the catalog; of
// row -1 they are null. It returns their size in bytes.
func (a *added) append(out parquet.Row, first int, row int64) (_ parquet.Row, size int, _ error) {
	for k, c := range a.cols {
		cell := columns.Cell{Null: true}
		if row >= 0 {
			var err error
			if cell, err = c.Cell(context.Background(), row); err != nil {
				return nil, 0, fault.WithFile(err, a.table)
			}
			size += 8 + len(cell.Text)
		}
		value, level := parquet.NullValue(), 0
		if !cell.Null {
			value, level = valueOf(cell, c), 1
		}
		out = append(out, value.Level(0, level, first+k))
	}
	return out, size, nil
}

// columnName checks that a column has a name.
func columnName(name string) error {
	if name == "" {
		return fault.New(fault.Unsupported, "column", fault.NoOffset, "a column of a catalog needs a name")
	}
	return nil
}

// nodeOf returns the type of a column.
func nodeOf(c *columns.Column) parquet.Node {
	switch c.Unit {
	case columns.Day:
		return parquet.Date()
	case time.Millisecond:
		return parquet.Timestamp(parquet.Millisecond)
	case time.Microsecond:
		return parquet.Timestamp(parquet.Microsecond)
	case time.Nanosecond:
		return parquet.Timestamp(parquet.Nanosecond)
	}
	switch c.Kind {
	case catalog.Int:
		return parquet.Int(64)
	case catalog.Float:
		return parquet.Leaf(parquet.DoubleType)
	}
	if c.Opaque {
		return parquet.Leaf(parquet.ByteArrayType)
	}
	return parquet.String()
}

// valueOf returns a cell that is not null, for the node of its column.
func valueOf(cell columns.Cell, c *columns.Column) parquet.Value {
	switch {
	case c.Unit == columns.Day:
		return parquet.Int32Value(int32(cell.Int))
	case c.Kind == catalog.Int:
		return parquet.Int64Value(cell.Int)
	case c.Kind == catalog.Float:
		return parquet.DoubleValue(cell.Float)
	}
	return parquet.ByteArrayValue(cell.Text)
}

// openTabled opens a table whose columns hold the paths of the fields' files.
func openTabled(ctx context.Context, p *paired, name string, base string) (err error) {
	tab, err := openTable(ctx, p.o.Opener, name)
	if err != nil {
		return err
	}
	p.closer = tab
	if err := columns.CheckRows(tab.Rows()); err != nil {
		return err
	}
	paths := make([]*columns.Column, len(p.fields))
	taken := map[string]bool{}
	for i, s := range p.fields {
		if paths[i], err = pathColumn(tab, s, taken); err != nil {
			return err
		}
	}
	if err := p.addColumns(tab, taken); err != nil {
		return err
	}
	return p.tableFiles(ctx, name, base, tab.Rows(), paths)
}

// pathColumn returns the column of a field's paths, and adds its name to taken.
func pathColumn(tab *columns.Table, s catalog.Source, taken map[string]bool) (*columns.Column, error) {
	if s.Pattern != "" {
		return nil, badField(s, "has a pattern, which finds files below a directory; of a table name a column")
	}
	name := cmp.Or(s.Column, s.Field)
	column, err := tab.Column(name)
	if err != nil {
		asset := columns.AssetColumn(name) // of a STAC item
		found, aerr := tab.Column(asset)
		if aerr != nil {
			return nil, fault.WithPart(err, fmt.Sprintf("field %q", s.Field), fault.NoOffset)
		}
		column, name = found, asset
	}
	if column.Kind != catalog.Text {
		return nil, badField(s, "column %q holds %ss, not paths", name, column.Kind)
	}
	taken[name] = true
	return column, nil
}

// addColumns adds the columns of the table, except columns of paths and of lists.
func (p *paired) addColumns(tab *columns.Table, taken map[string]bool) error {
	p.added = &added{table: p.name}
	for _, name := range tab.Names() {
		// The paths of the other assets of STAC items may be relative to the table, and the catalog may lie elsewhere.
		if taken[name] || strings.HasPrefix(name, "assets.") && strings.HasSuffix(name, ".href") {
			continue
		}
		column, err := tab.Column(name)
		if fault.KindOf(err) == fault.Unsupported {
			if p.o.LeftOut != nil {
				p.o.LeftOut(name)
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := p.added.add(name, column, p.own); err != nil {
			return err
		}
	}
	p.columns.Fields = append(p.columns.Fields, p.added.fields...)
	return nil
}

// tableFiles makes the lists of the files of each field, and of the rows of the table that have all of them.
func (p *paired) tableFiles(ctx context.Context, name, base string, n int64, paths []*columns.Column) error {
	folder := listing.Folder(name)
	p.files = make([][]namedFile, len(paths))
	for row := range n {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		files, err := p.filesOf(ctx, row, folder, base, paths)
		if err != nil {
			return err
		}
		if files == nil {
			p.o.Counts.Incomplete++
			continue
		}
		for i, f := range files {
			p.files[i] = append(p.files[i], f)
		}
		p.rows = append(p.rows, row)
	}
	return nil
}

// filesOf returns the files of a row, nil if it lacks one and such rows are left out.
func (p *paired) filesOf(ctx context.Context, row int64, folder, base string,
	paths []*columns.Column) ([]namedFile, error) {
	files := make([]namedFile, len(paths))
	for i, c := range paths {
		cell, err := c.Cell(ctx, row)
		if err != nil {
			return nil, err
		}
		if cell.Null || len(cell.Text) == 0 {
			if p.o.DropIncomplete {
				return nil, nil
			}
			return nil, fault.New(fault.NotFound, fmt.Sprintf("field %q row %d", p.fields[i].Field, row),
				fault.NoOffset, "no path")
		}
		files[i] = namedFile{path: listing.Resolve(folder, string(cell.Text))}
		if err := files[i].name(base, p.o.Absolute); err != nil {
			return nil, err
		}
	}
	return files, nil
}
