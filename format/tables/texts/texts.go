// Package texts has what tables that are texts have in common with names of files: kinds that values show. It reads no
// file: package format/tables/text does, where a program imports that.
package texts

import (
	"bytes"
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
)

// MaxBytes bounds a CSV file, which is read into memory, in bytes.
const MaxBytes = 4 << 30

// MaxList bounds the elements of a list, which are read for each row: embeddings have some thousand.
const MaxList = 1 << 16

// ToEnd ends the name of a column that has the rest of each line, with what separates values: of captions that stand
// without quotes.
const ToEnd = "+"

// Mark is the byte order mark of UTF-8, with which some texts begin, of programs on Windows above all.
const Mark = "\ufeff"

// ValueColumn is the column of rows of JSON that are no objects.
const ValueColumn = "value"

// Table has the columns of a text that were wanted.
type Table struct {
	*tables.Table
	Names []string // of all columns of the text
	Part  string   // of the text that names the columns, for errors
}

// Want says how values that a text file has as strings are read.
type Want uint8

// Ways to read a column.
const (
	Skipped Want = iota // not at all
	Values              // as numbers or booleans, if all of them are
	Typed               // as Values, but strings if one is a code
	Words               // as numbers, if all of them are of 64 bits and none is a code
	Written             // as strings
)

var (
	// Read reads a table, as text.Read does. Without that package it is an error: fault.Unsupported.
	Read = func(ctx context.Context, r source.Reader, name string, want func(name string) Want) (*Table, error) {
		return nil, notImported()
	}
	// ReadFiles reads several files as one table, as text.ReadFiles does.
	ReadFiles = func(ctx context.Context, o source.Opener, names, paths []string, want func(name string) Want) (*Table,
		error) {
		return nil, notImported()
	}
)

func notImported() error {
	return fault.NotImported("table", "reads CSV and JSON", "format/tables/text")
}

// AssetColumn returns the name of the column of the paths of an asset, in STAC items and in STAC-GeoParquet.
func AssetColumn(asset string) string { return "assets." + asset + ".href" }

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
