package build

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/rowkey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
)

// Join adds the columns of a table to a catalog.
type Join struct {
	// Table is a Parquet or CSV (.csv, .tsv) file with flat columns of numbers and strings, or one of STAC
	// items (.json), as datasets may be. All of its columns are added, except one called "uri".
	Table string
	// On is the column that names the file of a row: by its URI as it is written in the catalog or,
	// if no row has that, by its name without directory and extension. No two rows may have the
	// same value; a row may belong to several files.
	On string
	// Left allows files without a row; their columns are null. Otherwise they are NotFound.
	Left bool
}

// joined is a table whose rows belong to files.
type joined struct {
	added
	tab *columns.Table
	on  *rowkey.Index // the rows by the values of Join.On
	at  []int64       // the row of each file, or -1
}

// openJoin opens the table.
func openJoin(ctx context.Context, o Options) (_ *joined, err error) {
	j := &joined{added: added{table: o.Join.Table}}
	if j.tab, err = openTable(ctx, o.Opener, j.table, o.Join.On); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = j.tab.Close()
		}
	}()
	if err := columns.CheckRows(j.tab.Rows()); err != nil {
		return nil, err
	}
	if err := j.columns(o.Join.On); err != nil {
		return nil, err
	}
	j.on, err = j.keys(ctx, o.Join.On)
	return j, err
}

// ownNames returns the names of the columns of a row without further columns.
func ownNames() map[string]bool {
	own := map[string]bool{}
	for _, field := range rowio.Fields() {
		own[field.Name()] = true
	}
	return own
}

// columns adds the table's columns.
func (j *joined) columns(on string) error {
	if !slices.Contains(j.tab.Names(), on) {
		_, err := j.tab.Column(on)
		return err
	}
	own := ownNames()
	for _, name := range j.tab.Names() {
		if name == layout.URI {
			continue // the catalog's own
		}
		column, err := j.tab.Column(name)
		if err == nil {
			err = j.add(name, column, own)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keys returns the rows by the values of a column.
func (j *joined) keys(ctx context.Context, on string) (*rowkey.Index, error) {
	column, err := j.tab.Column(on)
	if err != nil {
		return nil, err
	}
	if column.Kind == catalog.Float {
		return nil, fault.New(fault.Unsupported, "column "+on, fault.NoOffset, "holds floats, which cannot name files")
	}
	keys := rowkey.New(on, "files", stem)
	err = column.Scan(ctx, func(row int64, v columns.Cell) error {
		switch {
		case v.Null:
			return nil
		case column.Kind == catalog.Int:
			return keys.Add(row, strconv.FormatInt(v.Int, 10))
		}
		return keys.Add(row, string(v.Text))
	})
	return keys, err
}

// match finds the row of each file, before any file is read, and refuses files without one unless the join allows them.
func (j *joined) match(files []namedFile, o Options) error {
	match := j.on.Match()
	j.at = make([]int64, len(files))
	for i, f := range files {
		j.at[i] = match.Row(f.uri)
	}
	o.Counts.Unmatched, o.Counts.Unused = match.Counts(j.tab.Rows())
	if o.Join.Left {
		return nil
	}
	return match.Err()
}

// stem returns the name of a file without directory and extension.
func stem(uri string) string {
	base := source.Name(uri)
	return strings.TrimSuffix(base, path.Ext(base))
}

// more returns the table's columns for the rows of the files.
func (j *joined) more() *rowio.Columns {
	return &rowio.Columns{Fields: j.fields, Append: func(row parquet.Row, i int) (parquet.Row, int, error) {
		return j.append(row, len(rowio.Fields()), j.at[i])
	}}
}
