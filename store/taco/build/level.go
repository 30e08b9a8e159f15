package build

import (
	"context"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/tables"
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
	entry *taco.Entry
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
		return (&catalog.Asset{Size: int64(len(r.bytes)), Bytes: r.bytes}).Reader(), nil
	case r.entry != nil:
		return taco.Section(ctx, o, *r.entry)
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

// size returns the number of bytes of a file, if that is known without opening it.
func (r *Row) size() (n int64, known bool) {
	switch {
	case r.bytes != nil:
		return int64(len(r.bytes)), true
	case r.entry != nil && r.entry.Size != taco.Whole:
		return int64(len(r.entry.Head)) + r.entry.Size, true
	}
	return 0, false
}

// kindName returns the type of a sample in the tables.
func kindName(folder bool) string {
	if folder {
		return "FOLDER"
	}
	return "FILE"
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

func levelName(k int) string { return model.LevelName(k) }

// replaced returns a table with further columns, which replace columns of the same names.
func replaced(t, by *tables.Table) *tables.Table {
	for _, c := range by.Columns() {
		t = t.Without(c.Name)
	}
	return tables.Join(t, by)
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
	return fault.New(fault.Unsupported, part, fault.NoOffset, format, args...)
}
