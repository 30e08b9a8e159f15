package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
	"github.com/chaski-eo/chaski/tables/encode"
)

// paired holds the files that the patterns of fields pair, or that the columns of a table name.
type paired struct {
	name   string // of the directory or table
	fields []catalog.Source
	files  [][]namedFile // by field, then by row
	o      Options
	first  int           // the first row of the current block
	more   [][]rowio.Row // by row of the block: the rows of the fields after the first
	// rowOf makes the row of a file.
	rowOf func(ctx context.Context, i, field int) (rowio.Row, error)

	columns rowio.Columns   // of the fields after the first, and of a table
	own     map[string]bool // names of columns

	added  *added    // the other columns of a table; nil without one
	rows   []int64   // the table's row of each row
	closer io.Closer // the table
}

// close closes the table, if there is one.
func (p *paired) close() error {
	if p == nil || p.closer == nil {
		return nil
	}
	return p.closer.Close()
}

// openPaired finds the files of every row.
func openPaired(ctx context.Context, paths []string, o Options) (*paired, error) {
	if len(paths) != 1 {
		return nil, fault.New(fault.Unsupported, "dataset", fault.NoOffset,
			"a catalog of pairs takes one directory, glob or table, not %d paths", len(paths))
	}
	p := &paired{name: paths[0], fields: o.Fields, o: o}
	if err := p.fieldColumns(); err != nil {
		return nil, err
	}
	base, err := pathname.Abs(o.Base)
	if err != nil {
		return nil, err
	}
	if catalog.IsTable(p.name) {
		if err := openTabled(ctx, p, p.name, base); err != nil {
			return nil, fault.WithFile(errors.Join(err, p.close()), p.name)
		}
	} else if err := p.listed(ctx, base); err != nil {
		return nil, err
	}
	p.columns.Append = p.append
	return p, nil
}

// listed finds the files that the patterns pair.
func (p *paired) listed(ctx context.Context, base string) error {
	options := p.o
	for _, s := range p.fields {
		if s.Pattern == "" {
			return badField(s, "has no pattern: a catalog of pairs needs one for every field")
		}
	}
	table, err := catalog.Open(ctx, p.name, options.Fields, catalog.Options{Opener: options.Opener,
		DropIncomplete: options.DropIncomplete})
	if err != nil {
		return err
	}
	defer func() { _ = table.Close() }()
	if !table.Listed() {
		return fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
			"is not a directory, glob or table"), p.name)
	}
	options.Counts.Incomplete, _ = table.Dropped()
	p.files = make([][]namedFile, len(options.Fields))
	for i := range p.files {
		files, err := table.Paths(ctx, i)
		if err != nil {
			return err
		}
		for _, path := range files {
			file := namedFile{path: path}
			if err := file.name(base, options.Absolute); err != nil {
				return err
			}
			p.files[i] = append(p.files[i], file)
		}
	}
	return nil
}

// badField is the error for a field that a catalog of pairs cannot have.
func badField(s catalog.Source, format string, args ...any) error {
	return fault.New(fault.Unsupported, fmt.Sprintf("field %q", s.Field), fault.NoOffset, format, args...)
}

// fieldColumns makes the columns of the fields after the first, and the metadata that names the fields.
func (p *paired) fieldColumns() error {
	if len(p.fields) > layout.MaxFields {
		return fault.New(fault.Limit, "catalog", fault.NoOffset, "%d fields, at most %d",
			len(p.fields), layout.MaxFields)
	}
	p.own = ownNames()
	var names []string
	for k, source := range p.fields {
		if err := columnName(source.Field); err != nil {
			return err
		}
		names = append(names, source.Field)
		if k == 0 {
			continue
		}
		prefix := source.Field + layout.FieldSeparator
		for _, column := range rowio.Fields() {
			name := prefix + column.Name()
			if column.Name() == layout.URI {
				name = source.Field
			}
			if p.own[name] || source.Field == p.fields[0].Field {
				return badField(source, "%q is a column of the catalog already", name)
			}
			p.own[name] = true
			p.columns.Fields = append(p.columns.Fields, encode.Field(name, column))
		}
		p.columns.Meta = append(p.columns.Meta,
			parquet.SkipPageBounds(prefix+layout.Index), parquet.SkipPageBounds(prefix+layout.Header))
	}
	text, err := json.Marshal(names)
	p.columns.Meta = append(p.columns.Meta, parquet.KeyValueMetadata(layout.FieldsKey, string(text)))
	return err
}

// begin makes room for the rows of a block.
func (p *paired) begin(first, n int) error {
	p.first, p.more = first, make([][]rowio.Row, n)
	return nil
}

// make makes the rows of the files of a sample.
func (p *paired) make(ctx context.Context, i int) (rowio.Row, error) {
	rows := make([]rowio.Row, len(p.files))
	for k := range p.files {
		var err error
		if rows[k], err = p.rowOf(ctx, i, k); err != nil {
			return rowio.Row{}, err
		}
	}
	p.more[i-p.first] = rows[1:]
	return rows[0], nil
}

// append appends the values of the fields after the first, and of the table, for row number i.
func (p *paired) append(row parquet.Row, i int) (_ parquet.Row, size int, err error) {
	first := len(rowio.Fields())
	for k := range p.more[i-p.first] {
		file := &p.more[i-p.first][k]
		row = file.Append(row, first)
		size += file.Bytes()
		first += len(rowio.Fields())
	}
	if p.added == nil {
		return row, size, nil
	}
	row, added, err := p.added.append(row, first, p.rows[i])
	return row, size + added, err
}
