package columns

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/join"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// Attach attaches a row of a table to each sample of level 0.
type Attach struct {
	// Table is a Parquet or CSV file (.csv, .tsv), or one of STAC items (.json).
	Table string
	// On is the column that names the sample of a row by its id or, if all rows lack that, by its id without an
	// extension. The values of rows must differ; a row may belong to several samples. The default is "id", which the
	// container then has itself; another column is attached with the others.
	On string
	// Text are columns whose values are text, also where a CSV file has digits.
	Text []string
	// Left allows samples without a row, whose columns are null. Otherwise they are NotFound.
	Left bool
	// Replace allows columns that the samples have already: the table's columns replace them.
	Replace bool

	// Unmatched is set to the number of samples that lack a row, and Unused to the number of rows that lack a sample.
	Unmatched, Unused int
}

// More implements build.Options.More. The columns are read into memory.
func (a *Attach) More(ctx context.Context, o source.Opener, levels []build.Level) (_ *tables.Table, err error) {
	defer func() { err = fault.WithFile(err, a.Table) }()
	on := cmp.Or(a.On, "id")
	table, closer, err := catalog.ReadTable(ctx, o, a.Table, append([]string{on}, a.Text...)...)
	if err != nil {
		return nil, err
	}
	defer closer.Close() //nolint:errcheck // it was only read
	rows, err := a.match(ctx, table, on, levels[0].Rows)
	if err != nil {
		return nil, err
	}
	set := &build.Columns{}
	for i, c := range table.Columns() {
		if c.Name == on && on == "id" {
			continue
		}
		name := Rename(c.Name)
		if levels[0].Table.Index(name) >= 0 && !a.Replace {
			return nil, fault.New(fault.Unsupported, "column "+c.Name, "the samples already have a column %q", name)
		}
		values, err := table.At(ctx, i)
		if err == nil {
			values, err = values.Take(rows)
		}
		if err != nil {
			return nil, fault.WithPart(err, "column "+c.Name, fault.NoOffset)
		}
		set.Add(name, values)
	}
	if set.Len() == 0 {
		return nil, fault.New(fault.Unsupported, "table", "has no column beside %q", on)
	}
	return set.Table(len(rows)), nil
}

// match returns the row of each sample, -1 for none.
func (a *Attach) match(ctx context.Context, t *tables.Table, on string, samples []build.Row) ([]int, error) {
	values, err := t.Names(ctx, on)
	if err != nil {
		return nil, err
	}
	keys := join.New(values)
	if err := keys.Unique(on, ""); err != nil {
		return nil, err
	}
	ids, rows := make([]string, 0, len(samples)), slices.Repeat([]int{-1}, len(samples))
	for _, sample := range samples {
		if !sample.Padding {
			ids = append(ids, sample.ID)
		}
	}
	found, k := keys.RowsOf(ids, stem), 0
	for i := range samples {
		if !samples[i].Padding {
			rows[i] = int(found.Of[k])
			k++
		}
	}
	a.Unmatched, a.Unused = found.Unmatched, found.Unused
	return rows, found.Err(on, "samples", a.Left)
}

// stem returns an id without an extension.
func stem(id string) string { return strings.TrimSuffix(id, path.Ext(id)) }
