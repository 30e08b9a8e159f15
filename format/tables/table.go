package tables

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/keylock"
	"github.com/chaski-eo/chaski/internal/num"
)

// Table is a number of named columns of equal length. A column's values are loaded on first use. It is immutable, and
// safe for concurrent use.
type Table struct {
	n      int
	cols   []Column
	load   func(ctx context.Context, i int) (*Vector, error)
	loaded []keylock.Value[*Vector]
	pages  *parquetTable // if the columns lie in a Parquet object, else nil
}

// New returns a table of n rows. load returns column i, of the type of cols[i] and with n values. It is called until it
// succeeds once.
func New(n int, cols []Column, load func(ctx context.Context, i int) (*Vector, error)) *Table {
	return &Table{n: n, cols: cols, load: load, loaded: make([]keylock.Value[*Vector], len(cols))}
}

// FromVectors returns a table of columns of equal length that are in memory.
func FromVectors(names []string, vectors []*Vector) *Table {
	cols := make([]Column, len(names))
	rows := 0
	for i, vector := range vectors {
		cols[i] = Column{Name: names[i], Type: vector.typ}
		rows = vector.n
	}
	return New(rows, cols, func(_ context.Context, i int) (*Vector, error) { return vectors[i], nil })
}

// Len returns the number of rows.
func (t *Table) Len() int { return t.n }

// Meta returns an entry of the key-value metadata of the Parquet object that the table was read from.
func (t *Table) Meta(key string) (value string, ok bool) {
	if t.pages == nil {
		return "", false
	}
	value, ok = t.pages.f.Meta[key]
	return value, ok
}

// Columns returns the columns. The slice must not be changed.
func (t *Table) Columns() []Column { return t.cols }

// Index returns the number of the column with a name, or -1.
func (t *Table) Index(name string) int {
	return slices.IndexFunc(t.cols, func(c Column) bool { return c.Name == name })
}

// Column returns the column with a name. If it does not exist, the error is fault.NotFound, and lists the columns.
func (t *Table) Column(ctx context.Context, name string) (*Vector, error) {
	i := t.Index(name)
	if i < 0 {
		return nil, t.NoColumn(name)
	}
	return t.At(ctx, i)
}

// At returns column i.
func (t *Table) At(ctx context.Context, i int) (*Vector, error) {
	return t.loaded[i].Get(ctx, func() (*Vector, error) { return t.decode(ctx, i) })
}

// decode returns column i, and does not keep it.
func (t *Table) decode(ctx context.Context, i int) (*Vector, error) {
	values, err := t.load(ctx, i)
	if err == nil && values.n != t.n {
		err = fault.New(fault.Corrupt, "column "+t.cols[i].Name, "%d values in a table of %d rows", values.n, t.n)
	}
	return values, err
}

// Check decodes every column, one at a time, and checks that strings are UTF-8. It keeps no column.
func (t *Table) Check(ctx context.Context) error {
	for i, column := range t.cols {
		values, err := t.inMemory(i), error(nil)
		if values == nil {
			if values, err = t.decode(ctx, i); err != nil {
				return err
			}
		}
		if !values.ValidText() {
			return fault.New(fault.Corrupt, "column "+column.Name, "has a string that is not UTF-8")
		}
	}
	return nil
}

// NoColumn returns the error for a column that does not exist.
func (t *Table) NoColumn(name string) error {
	return fault.New(fault.NotFound, "table", "no column %q; there are %s", name, Near(name, t.cols))
}

// Names lists columns for a message.
func Names(cols []Column) string { return fault.List(cols, nameOf) }

// Near lists columns for a message about one that does not exist, as fault.Near does.
func Near(missing string, cols []Column) string { return fault.Near(missing, cols, nameOf) }

func nameOf(c Column) string { return c.Name }

// Take returns the table of the rows with these numbers, in that order; a negative number gives a row of nulls. The
// caller must not change rows afterwards.
func (t *Table) Take(rows []int) *Table {
	return New(len(rows), t.cols, func(ctx context.Context, i int) (*Vector, error) {
		if p := t.readerOfFew(i, rows); p != nil {
			return p.column(ctx, i)
		}
		values, err := t.At(ctx, i)
		if err != nil {
			return nil, err
		}
		values, err = values.Take(rows)
		return values, fault.WithPart(err, "column "+t.cols[i].Name, fault.NoOffset)
	})
}

// Select returns the table of the columns with these numbers, in that order.
func (t *Table) Select(columns []int) *Table {
	return New(t.n, num.Pick(t.cols, columns), func(ctx context.Context, k int) (*Vector, error) {
		return t.At(ctx, columns[k])
	})
}

// Without returns the table with all columns but those with a name.
func (t *Table) Without(name string) *Table {
	var columns []int
	for i, c := range t.cols {
		if c.Name != name {
			columns = append(columns, i)
		}
	}
	return t.Select(columns)
}

// Rename returns the table with each column's name replaced by name(old). Both have the columns that either loads.
func (t *Table) Rename(name func(string) string) *Table {
	out := *t
	out.cols = slices.Clone(t.cols)
	for i := range out.cols {
		out.cols[i].Name = name(out.cols[i].Name)
	}
	return &out
}

// Retype returns the table with each column's type replaced by typ(i, column), another form of the same values.
func (t *Table) Retype(typ func(i int, c Column) Type) *Table {
	cols := slices.Clone(t.cols)
	for i := range cols {
		cols[i].Type = typ(i, cols[i])
	}
	return New(t.n, cols, t.At)
}

// Join returns the table of the columns of several tables of equal length, one after the other.
func Join(tables ...*Table) *Table {
	if len(tables) == 1 {
		return tables[0]
	}
	type place struct {
		t *Table
		i int
	}
	var cols []Column
	var places []place
	rows := 0
	for _, tbl := range tables {
		rows = tbl.n
		cols = append(cols, tbl.cols...)
		for i := range tbl.cols {
			places = append(places, place{tbl, i})
		}
	}
	return New(rows, cols, func(ctx context.Context, i int) (*Vector, error) {
		return places[i].t.At(ctx, places[i].i)
	})
}
