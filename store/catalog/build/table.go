package build

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// openTable opens a table, and returns the names of its columns. Columns of a CSV file that raw names stay strings.
func openTable(ctx context.Context, opener source.Opener, name string, raw ...string) (columns.Table, []string, error) {
	file, ext, err := columns.OpenFile(ctx, opener, name)
	if err != nil {
		return nil, nil, err
	}
	if columns.IsParquet(ext) {
		t, err := columns.OpenParquet(ctx, file, 32<<20)
		if err != nil {
			_ = file.Close()
			return nil, nil, err
		}
		names := make([]string, len(t.File.Columns))
		for i := range t.File.Columns {
			names[i] = t.File.Columns[i].Name
		}
		return t, names, nil
	}
	defer func() { _ = file.Close() }()
	held, err := columns.OpenHeld(ctx, file, ext, nil, raw...)
	if err != nil {
		return nil, nil, err
	}
	return held, held.Names, nil
}

// maxAdded bounds the columns of a table that a catalog takes: reflect.StructOf makes a struct type of them.
const maxAdded = 1000

// added are the columns of a table that a catalog has beside the columns about its files.
type added struct {
	table string // its name, for errors
	cols  []columns.Column
}

// add adds a column, and returns its field in the struct type of a row. own are the names that the row has.
func (a *added) add(name string, c columns.Column, own map[string]bool) (reflect.StructField, error) {
	if own[name] {
		return reflect.StructField{}, fault.New(fault.Unsupported, "column "+name, fault.NoOffset,
			"a catalog already has a column of this name")
	}
	if len(a.cols) == maxAdded {
		return reflect.StructField{}, fault.New(fault.Limit, "table", fault.NoOffset, "over %d columns", maxAdded)
	}
	if err := columnName(name); err != nil {
		return reflect.StructField{}, err
	}
	own[name] = true
	a.cols = append(a.cols, c)
	return reflect.StructField{
		Name: "Added" + strconv.Itoa(len(a.cols)), Type: goType(c),
		Tag: reflect.StructTag(`parquet:"` + name + `,optional,plain,zstd` + timeTag(c) + `"`),
	}, nil
}

// set sets the fields of a struct, from field first on, to a row of the table. It returns their size in bytes.
func (a *added) set(v reflect.Value, first int, row int64) (size int, _ error) {
	for k, c := range a.cols {
		cell, err := c.Cell(context.Background(), row)
		if err != nil {
			return 0, fault.WithFile(err, a.table)
		}
		size += 8 + len(cell.Text)
		if f := v.Field(first + k); !cell.Null {
			f.Set(valueOf(cell, f.Type()))
		}
	}
	return size, nil
}

// columnName checks that a name can be written into a struct tag, where parquet-go reads it.
func columnName(name string) error {
	if name == "" || name == "-" || strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || strings.ContainsRune("\",`\\", r)
	}) {
		return fault.New(fault.Unsupported, "column "+name, fault.NoOffset,
			"%q cannot be a column's name in a catalog", name)
	}
	return nil
}

// timeTag returns the struct tag's annotation of a column of dates or timestamps.
func timeTag(c columns.Column) string {
	return map[time.Duration]string{
		columns.Day: ",date", time.Millisecond: ",timestamp(millisecond)",
		time.Microsecond: ",timestamp(microsecond)", time.Nanosecond: ",timestamp(nanosecond)",
	}[columns.UnitOf(c)]
}

// goType returns the Go type of a column, whose nil is a null.
func goType(c columns.Column) reflect.Type {
	if columns.UnitOf(c) == columns.Day {
		return reflect.TypeFor[*int32]()
	}
	switch c.Kind() {
	case catalog.Int:
		return reflect.TypeFor[*int64]()
	case catalog.Float:
		return reflect.TypeFor[*float64]()
	}
	if p, ok := c.(*columns.ParquetColumn); ok && p.Opaque {
		return reflect.TypeFor[[]byte]()
	}
	return reflect.TypeFor[*string]()
}

func valueOf(x columns.Cell, t reflect.Type) reflect.Value {
	switch t {
	case reflect.TypeFor[*int32](): // a date, of 32 bits
		n := int32(x.Int)
		return reflect.ValueOf(&n)
	case reflect.TypeFor[*int64]():
		return reflect.ValueOf(&x.Int)
	case reflect.TypeFor[*float64]():
		return reflect.ValueOf(&x.Float)
	case reflect.TypeFor[[]byte]():
		if len(x.Text) == 0 {
			return reflect.ValueOf([]byte{})
		}
		return reflect.ValueOf(bytes.Clone(x.Text))
	}
	s := string(x.Text)
	return reflect.ValueOf(&s)
}

// openTabled opens a table whose columns hold the paths of the fields' files.
func openTabled(ctx context.Context, p *paired, name string, base string) (err error) {
	tab, names, err := openTable(ctx, p.o.Opener, name)
	if err != nil {
		return err
	}
	p.closer = tab
	if err := columns.CheckRows(tab.Rows()); err != nil {
		return err
	}
	paths := make([]columns.Column, len(p.fields))
	taken := map[string]bool{}
	for i, s := range p.fields {
		if paths[i], err = pathColumn(tab, s, taken); err != nil {
			return err
		}
	}
	if err := p.addColumns(tab, names, taken); err != nil {
		return err
	}
	return p.tableFiles(ctx, name, base, tab.Rows(), paths)
}

// pathColumn returns the column of a field's paths, and adds its name to taken.
func pathColumn(tab columns.Table, s catalog.Source, taken map[string]bool) (columns.Column, error) {
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
	if column.Kind() != catalog.Text {
		return nil, badField(s, "column %q holds %ss, not paths", name, column.Kind())
	}
	taken[name] = true
	return column, nil
}

// addColumns adds the columns of the table to the type of a row, except columns of paths and of lists.
func (p *paired) addColumns(tab columns.Table, names []string, taken map[string]bool) error {
	p.added = &added{table: p.name}
	for _, name := range names {
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
		field, err := p.added.add(name, column, p.own)
		if err != nil {
			return err
		}
		p.types = append(p.types, field)
	}
	return nil
}

// tableFiles makes the lists of the files of each field, and of the rows of the table that have all of them.
func (p *paired) tableFiles(ctx context.Context, name, base string, n int64, paths []columns.Column) error {
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
	paths []columns.Column) ([]namedFile, error) {
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
		file := namedFile{path: listing.Resolve(folder, string(cell.Text))}
		if file.uri, err = uriOf(base, file.path, p.o.Absolute); err != nil {
			return nil, err
		}
		files[i] = file
	}
	return files, nil
}
