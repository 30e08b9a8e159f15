package build

import (
	"context"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// Level is the samples of one level, in the order of their parents. Options.More and Options.Inspect get it before they
// are written.
type Level struct {
	Rows  []Row
	Table *tables.Table // the columns that the samples have already
	// first has, for each row, the row of the next level that is its first child, and one more at the end. It
	// is nil at the deepest level.
	first []int32
	spans []span // of a ZIP, where the bytes of each row are
}

// Row is a sample of a level.
type Row struct {
	ID     string
	Parent int32 // the row in the level above; at level 0 the row itself, as the original writers have it
	Folder bool
	// Padding marks a placeholder. Its id alone does not say so: in TACO 3 and Tortillas any sample may have it.
	Padding bool

	// Of a file one of these is set: its path or URI, its bytes, or its place in another container.
	file  string
	bytes []byte
	entry *store.Entry
}

// add adds a row to level k, and returns its number.
func (l *Level) add(k int, r Row) int32 {
	row := int32(len(l.Rows))
	if k == 0 {
		r.Parent = row
	}
	l.Rows = append(l.Rows, r)
	return row
}

// takePlaces notes where a ZIP that the level is copied of has the bytes of each row.
func (l *Level) takePlaces() {
	l.spans = make([]span, len(l.Rows))
	for i := range l.Rows {
		l.spans[i] = span{Off: l.Rows[i].entry.Offset, Size: l.Rows[i].entry.Size}
	}
}

// below returns the range of the children of a row in the next level.
func (l *Level) below(row int) (from, to int) { return int(l.first[row]), int(l.first[row+1]) }

// id returns the id of a row.
func (l *Level) id(row int) string { return l.Rows[row].ID }

// Open opens the bytes of a file.
func (r *Row) Open(ctx context.Context, o source.Opener) (source.Reader, error) {
	switch {
	case r.bytes != nil:
		return source.Memory(r.bytes), nil
	case r.entry != nil:
		return r.entry.Open(ctx, o)
	}
	return o.Open(ctx, r.file)
}

// uri returns the path or URI of the file that has the bytes.
func (r *Row) uri() string {
	if r.entry != nil {
		return r.entry.URI
	}
	return r.file
}

// path returns the ids from level 0 down to a row, joined by "/".
func path(levels []*Level, k, row int) string {
	id := levels[k].Rows[row].ID
	for ; k > 0; k-- {
		row = int(levels[k].Rows[row].Parent)
		id = levels[k-1].Rows[row].ID + "/" + id
	}
	return id
}

// replaced returns a table with further columns, which take the places of columns of the same names.
func replaced(t, by *tables.Table) *tables.Table {
	n := len(t.Columns())
	places := num.Range[int](0, n)
	// Join puts these columns behind the others, so column i is at n + i.
	for i, column := range by.Columns() {
		if k := t.Index(column.Name); k >= 0 {
			places[k] = n + i
		} else {
			places = append(places, n+i)
		}
	}
	return tables.Join(t, by).Select(places)
}

// only returns the columns of a table whose names keep accepts.
func only(t *tables.Table, keep func(name string) bool) *tables.Table {
	var places []int
	for i, column := range t.Columns() {
		if keep(column.Name) {
			places = append(places, i)
		}
	}
	return t.Select(places)
}

// checkColumns checks the names of the columns of a level.
func checkColumns(t *tables.Table, k int) error {
	bad := func(format string, args ...any) error {
		return unsupported("level "+strconv.Itoa(k), format, args...)
	}
	seen := map[string]bool{}
	for _, column := range t.Columns() {
		if what := badColumn(column.Name); what != "" {
			return bad("column %q %s", column.Name, what)
		}
		if seen[column.Name] {
			return bad("there are two columns %q", column.Name)
		}
		seen[column.Name] = true
	}
	return nil
}

// badColumn returns the reason why a column may not have this name, or "".
func badColumn(name string) string {
	switch {
	case name == "":
		return "has no name"
	case name == model.ColumnID || name == model.ColumnType || name == "path" || strings.HasPrefix(name, "internal:"):
		return "is one that the container has itself"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "is not UTF-8 without control characters"
	}
	return ""
}

// badIDFor returns the reason why a sample of level k may not have this id, or "". No path has the ids of the samples
// of TACO 3, whose folders are numbered.
func badIDFor(f Form, k int, id string) string {
	switch {
	case !f.Named() || k > 0:
		return badID(id)
	case strings.TrimSpace(id) == "":
		return "is blank"
	case !utf8.ValidString(id):
		return "is not UTF-8"
	}
	return ""
}

// badID returns the reason why no path may have this id, or "".
func badID(id string) string {
	if what := taco2.BadID(id); what != "" {
		return what
	}
	if strings.HasPrefix(id, model.PadPrefix) {
		return `begins with "` + model.PadPrefix + `", which is reserved`
	}
	if strings.ContainsFunc(id, unicode.IsControl) {
		return "holds a control character"
	}
	return ""
}

// unsupported returns an error about a part of a container.
func unsupported(part, format string, args ...any) *fault.Error {
	return fault.New(fault.Unsupported, part, format, args...)
}

// Columns are columns in memory, with the types that they are stored in.
type Columns struct {
	cols    []tables.Column
	vectors []*tables.Vector
}

// Len returns the number of columns.
func (c *Columns) Len() int { return len(c.cols) }

// Add adds a column, and returns the columns.
func (c *Columns) Add(name string, v *tables.Vector) *Columns { return c.addAs(name, v.Type(), v) }

// addAs adds a column that is stored in a type.
func (c *Columns) addAs(name string, t tables.Type, v *tables.Vector) *Columns {
	c.cols, c.vectors = append(c.cols, tables.Column{Name: name, Type: t}), append(c.vectors, v)
	return c
}

// Table returns the columns as a table of n rows.
func (c *Columns) Table(n int) *tables.Table {
	return tables.New(n, c.cols, func(_ context.Context, i int) (*tables.Vector, error) { return c.vectors[i], nil })
}

// integers returns n values of a type.
func integers(t tables.Type, n int, value func(i int) int64) *tables.Vector {
	values := make([]int64, n)
	for i := range values {
		values[i] = value(i)
	}
	return tables.NewInts(t, values, nil)
}

// Texts returns n strings; "" is null.
func Texts(n int, value func(i int) string) *tables.Vector {
	texts, none := make([]string, n), make([]bool, n)
	for i := range n {
		texts[i] = value(i)
		none[i] = texts[i] == ""
	}
	return tables.NewStrings(texts, none)
}

// Bytes returns n byte strings; a nil one is null.
func Bytes(n int, value func(i int) []byte) *tables.Vector {
	return joined(n, value, func(all []byte, offs []uint32, none []bool) *tables.Vector {
		return tables.NewBytes(tables.Type{Kind: tables.Binary}, all, offs, none)
	})
}

// Integers returns n lists of integers; a nil one is null.
func Integers(n int, value func(i int) []int64) *tables.Vector {
	return Lists(func(all []int64) *tables.Vector { return tables.NewInts(tables.Ints, all, nil) }, n, value)
}

// Floats returns n lists of numbers of a type; a nil one is null.
func Floats(t tables.Type, n int, value func(i int) []float64) *tables.Vector {
	return Lists(func(all []float64) *tables.Vector { return tables.NewFloats(t, all, nil) }, n, value)
}

// Lists returns n lists, of whose elements of makes a column; a nil one is null.
func Lists[T any](of func(all []T) *tables.Vector, n int, value func(i int) []T) *tables.Vector {
	return joined(n, value, func(all []T, offs []uint32, none []bool) *tables.Vector {
		return tables.NewList(of(all), offs, none)
	})
}

// joined calls vector with the elements of n values, where each ends, and which are nil.
func joined[T any](n int, value func(i int) []T,
	vector func(all []T, offs []uint32, none []bool) *tables.Vector) *tables.Vector {
	var all []T
	offs, none := make([]uint32, 1, n+1), make([]bool, n)
	for i := range n {
		v := value(i)
		none[i] = v == nil
		all = append(all, v...)
		offs = append(offs, uint32(len(all)))
	}
	return vector(all, offs, none)
}
