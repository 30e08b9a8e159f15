// Package text reads tables that are texts: CSV files, and STAC items or other objects in JSON. All columns that are
// wanted are in memory then, with the types that their values show.
package text

import (
	"bytes"
	"context"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

// Table has the columns of a text that were wanted.
type Table struct {
	*tables.Table
	Names []string // of all columns of the text
	Part  string   // of the text that names the columns, for errors
}

// Read reads a CSV file or STAC items, as the extension of name says, and its columns as want says, which items
// heed for Skipped alone.
func Read(ctx context.Context, r source.Reader, name string, want func(name string) Want) (*Table, error) {
	if name = source.Name(name); magic.Named(name).Class != magic.CSV {
		return readItems(ctx, r, want)
	}
	return readCSV(ctx, r, separator(name), want)
}

// separator returns what separates the values of a CSV file by its name, 0 if its first line says so.
func separator(name string) rune {
	switch strings.ToLower(path.Ext(name)) {
	case ".tsv":
		return '\t'
	case ".txt":
		return 0
	}
	return ','
}

// MaxList bounds the elements of a list, which are read for each row: embeddings have some thousand.
const MaxList = 1 << 16

// held is a column in memory, or what is wrong with one of integers, which whoever uses it is told.
type held struct {
	values *tables.Vector
	wrong  error
}

// heldTable returns the table of n rows of the columns by their names. A wanted one has values.
func heldTable(n int64, names []string, columns map[string]held, part string) *Table {
	var cols []tables.Column
	for _, name := range names {
		column, wanted := columns[name]
		typ := tables.Type{Kind: tables.Int64, Bits: 64}
		if column.values != nil {
			typ = column.values.Type()
		}
		if wanted {
			cols = append(cols, tables.Column{Name: name, Type: typ})
		}
	}
	values := tables.New(int(n), cols, func(_ context.Context, i int) (*tables.Vector, error) {
		column := columns[cols[i].Name]
		return column.values, fault.WithPart(column.wrong, "column "+cols[i].Name, fault.NoOffset)
	})
	return &Table{Table: values, Names: names, Part: part}
}

// FolderOf returns the part of a path between its last two slashes. The query of a URL may have slashes, too.
func FolderOf(path []byte) []byte {
	if bytes.HasPrefix(path, []byte("http://")) || bytes.HasPrefix(path, []byte("https://")) {
		path, _, _ = bytes.Cut(path, []byte{'?'})
	}
	pos := bytes.LastIndexByte(path, '/')
	if pos < 0 {
		return nil
	}
	return path[bytes.LastIndexByte(path[:pos], '/')+1 : pos]
}
