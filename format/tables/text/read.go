// Package text reads tables that are texts: CSV files, and STAC items or other objects in JSON. All columns that are
// wanted are in memory then, with the types that their values show.
package text

import (
	"context"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

func init() { texts.Read, texts.ReadFiles = Read, ReadFiles }

// Read reads a CSV file or STAC items, as the extension of name says, and its columns as want says, which items
// heed for Skipped alone.
func Read(ctx context.Context, r source.Reader, name string, want func(name string) texts.Want) (*texts.Table, error) {
	_, member, _ := source.SplitJSON(name)
	if name = source.Name(name); magic.Named(name).Class != magic.CSV {
		return readItems(ctx, r, member, want)
	}
	return readCSV(ctx, r, separator(name), want)
}

// separator returns what separates the values of a CSV file by its name. The first line may replace a comma by another
// separator. 0 is for words, which blanks may separate.
func separator(name string) rune {
	switch strings.ToLower(path.Ext(name)) {
	case ".tsv":
		return '\t'
	case ".txt":
		return 0
	}
	return ','
}

// held is a column in memory, or what is wrong with one of integers, which whoever uses it is told.
type held struct {
	values *tables.Vector
	wrong  error
}

// infer returns the column that strings show.
func infer(ctx context.Context, column *tables.Vector, want texts.Want, commas bool) (held, error) {
	values, err := texts.Infer(ctx, column, want, commas)
	return held{values, err}, ctx.Err()
}

// heldTable returns the table of n rows of the columns by their names. A wanted one has values.
func heldTable(n int64, names []string, columns map[string]held, part string) *texts.Table {
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
	return &texts.Table{Table: values, Names: names, Part: part}
}
