package build

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/encode"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/join"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// Join adds the columns of a table to a catalog.
type Join struct {
	// Table is a Parquet or CSV (.csv, .tsv) file, or one of STAC items (.json), as datasets may be. All of its columns
	// of numbers and strings are added, except one called "uri".
	Table string
	// On is the column that names the file of a row by its URI as it is written in the catalog or, if all rows lack
	// that, by its name without directory and extension. The values of rows must differ; a row may belong to several
	// files.
	On string
	// Left allows files without a row; their columns are null. Otherwise they are NotFound.
	Left bool
}

// cacheBytes bounds the decoded pages of a table whose columns a catalog takes: each row reads a page of each column.
const cacheBytes = 32 << 20

// openTable opens the table whose columns the catalog has. Columns of a CSV file that raw names stay strings.
func (l *Listing) openTable(ctx context.Context, name string, raw ...string) (err error) {
	l.tableName = name
	l.table, err = columns.Open(ctx, l.o.Opener, name, cacheBytes, raw...)
	return err
}

// join opens the table and finds the row of each file, before any file is read. It refuses files without one unless the
// join allows them.
func (l *Listing) join(ctx context.Context) error {
	on := l.o.Join.On
	if err := l.openTable(ctx, l.o.Join.Table, on); err != nil {
		return err
	}
	column, err := l.table.Column(on)
	if err != nil {
		return err
	}
	if err := l.addColumns(func(name string) bool { return name == layout.URI }); err != nil {
		return err
	}
	if column.Kind == catalog.Float {
		return fault.New(fault.Unsupported, "column "+on, "holds floats, which cannot name files")
	}
	keys := make([]string, l.table.Rows())
	err = column.Scan(ctx, func(row int64, v catalog.Value) error {
		if !v.Null {
			keys[row] = v.In(column.Kind)
		}
		return nil
	})
	if err != nil {
		return err
	}
	names := join.New(keys)
	if err := names.Unique(on, ""); err != nil {
		return err
	}
	uris := make([]string, len(l.files[0]))
	for i, f := range l.files[0] {
		uris[i] = f.uri
	}
	found := names.RowsOf(uris, stem)
	l.rows, l.o.Counts.Unmatched, l.o.Counts.Unused = found.Of, found.Unmatched, found.Unused
	return found.Err(on, "files", l.o.Join.Left)
}

// stem returns the name of a file without directory and extension.
func stem(uri string) string {
	base := source.Name(uri)
	return strings.TrimSuffix(base, path.Ext(base))
}

// listTable finds the files that the columns of a table name, and adds its other columns.
func (l *Listing) listTable(ctx context.Context, name string, dir home) error {
	if err := l.openTable(ctx, name); err != nil {
		return err
	}
	paths, taken := make([]*columns.Column, len(l.files)), map[string]bool{}
	var err error
	for i, s := range l.o.Fields {
		if paths[i], err = pathColumn(l.table, s, taken); err != nil {
			return err
		}
	}
	err = l.addColumns(func(name string) bool {
		// The paths of other assets of STAC items are left out, because they may be relative to the table, and the
		// catalog may lie elsewhere.
		return taken[name] || strings.HasPrefix(name, "assets.") && strings.HasSuffix(name, ".href")
	})
	if err != nil {
		return err
	}
	lacks := make([]bool, l.table.Rows()) // a file
	for i, column := range paths {
		if l.files[i], err = l.namedIn(ctx, column, l.o.Fields[i].Field, name, dir, lacks); err != nil {
			return err
		}
	}
	for row, without := range lacks {
		if without {
			l.o.Counts.Incomplete++
		} else {
			l.rows = append(l.rows, int64(row))
		}
	}
	for i, files := range l.files {
		kept := files[:0]
		for _, row := range l.rows {
			kept = append(kept, files[row])
		}
		l.files[i] = slices.Clip(kept)
	}
	return nil
}

// pathColumn returns the column of a field's paths, and adds its name to taken.
func pathColumn(tab *columns.Table, s catalog.Source, taken map[string]bool) (*columns.Column, error) {
	if s.Pattern != "" {
		return nil, badField(s, "has a pattern, which finds files below a directory; of a table name a column")
	}
	name := cmp.Or(s.Column, s.Field)
	column, err := tab.Column(name)
	if err != nil {
		asset := texts.AssetColumn(name) // of a STAC item
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

// namedIn returns the file that each row of the column of a field names. Rows without one are an error, or left out:
// they are set in lacks.
func (l *Listing) namedIn(ctx context.Context, column *columns.Column, field, table string, dir home,
	lacks []bool) ([]namedFile, error) {
	files, folder := make([]namedFile, len(lacks)), listing.Folder(table)
	err := column.Scan(ctx, func(row int64, cell catalog.Value) error {
		if cell.Null || len(cell.Text) == 0 {
			if lacks[row] = true; l.o.DropIncomplete {
				return nil
			}
			return fault.New(fault.NotFound, fmt.Sprintf("field %q row %d", field, row),
				"no path: drop_missing (--drop-missing) leaves out such rows, and a run without a catalog keeps them "+
					"by missing \"fill\" of the field")
		}
		files[row].path = listing.Resolve(nil, folder, string(cell.Text))
		return files[row].name(dir, l.o.Absolute)
	})
	return files, err
}

// maxAdded bounds the columns of a table that a catalog takes: each has buffers of its own in the writer.
const maxAdded = 1000

// addColumns adds the columns of the table that leave does not name. It leaves out those that cannot be added, such as
// lists of lists.
func (l *Listing) addColumns(leave func(name string) bool) error {
	for _, name := range l.table.Names() {
		if leave(name) {
			continue
		}
		column, err := l.table.AnyColumn(name)
		switch {
		case fault.KindOf(err) == fault.Unsupported:
			if l.o.LeftOut != nil {
				l.o.LeftOut(name)
			}
			continue
		case err == nil && l.own[name]:
			err = fault.New(fault.Unsupported, "column "+name, "a catalog already has a column of this name")
		case err == nil && len(l.added) == maxAdded:
			err = fault.New(fault.Limit, "table", "over %d columns", maxAdded)
		case err == nil:
			err = columnName(name)
		}
		if err != nil {
			return err
		}
		l.own[name] = true
		node := parquet.Optional(parquet.Compressed(parquet.Encoded(nodeOf(column), &parquet.Plain), &parquet.Zstd))
		if column.Kind.IsList() {
			node = parquet.Optional(parquet.List(node))
		}
		l.added, l.columns.Fields = append(l.added, column), append(l.columns.Fields, encode.Field(name, node))
	}
	return nil
}

// appendAdded appends the values of a row of the table, whose columns have the numbers from first on in the catalog; of
// row -1 they are null. It returns their size in bytes.
func (l *Listing) appendAdded(out parquet.Row, first int, row int64) (_ parquet.Row, size int, _ error) {
	for k, c := range l.added {
		cell := catalog.Value{Null: true}
		if row >= 0 {
			var err error
			if cell, err = c.Cell(context.Background(), row); err != nil {
				return nil, 0, fault.WithFile(err, l.tableName)
			}
		}
		out = appendCell(out, c, cell, first+k)
		for _, value := range append(cell.List, cell) {
			size += 8 + len(value.Text)
		}
	}
	return out, size, nil
}

// appendCell appends the values of a cell of column number k. Their levels are the levels of the nodes of
// addColumns.
func appendCell(out parquet.Row, c *columns.Column, cell catalog.Value, k int) parquet.Row {
	cells, above := []catalog.Value{cell}, 0 // levels above the value
	switch {
	case !c.Kind.IsList() || cell.Null:
	case len(cell.List) == 0:
		return append(out, parquet.NullValue().Level(0, 1, k))
	default:
		cells, above = cell.List, 2 // of the list and its repeated group
	}
	for i, cell := range cells {
		value, level := parquet.NullValue(), above
		if !cell.Null {
			value, level = valueOf(cell, c), above+1
		}
		out = append(out, value.Level(min(i, 1), level, k))
	}
	return out
}

// columnName checks that a column has a name.
func columnName(name string) error {
	if name == "" {
		return fault.New(fault.Unsupported, "column", "a column of a catalog needs a name")
	}
	return nil
}

// nodeOf returns the type of a column.
func nodeOf(c *columns.Column) parquet.Node {
	switch c.Unit {
	case columns.Day:
		return parquet.Date()
	case time.Microsecond: // what columns have all timestamps in
		return parquet.Timestamp(parquet.Microsecond)
	}
	switch c.Kind.Elem() {
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
func valueOf(cell catalog.Value, c *columns.Column) parquet.Value {
	switch {
	case c.Unit == columns.Day:
		return parquet.Int32Value(int32(cell.Int))
	case c.Kind.Elem() == catalog.Int:
		return parquet.Int64Value(cell.Int)
	case c.Kind.Elem() == catalog.Float:
		return parquet.DoubleValue(cell.Float)
	}
	return parquet.ByteArrayValue(cell.Text)
}
