// Package rowkey finds the rows of a table that belong to files or samples: one of the table's columns names them.
package rowkey

import (
	"fmt"

	"github.com/chaski-eo/chaski/fault"
)

// Index has the row of each value of a column.
type Index struct {
	column, things string
	stem           func(string) string
	rows           map[string]int64
}

// New returns an empty index of a column. things names the things that rows describe, for errors: "files" or
// "samples". stem returns the second name of such a thing, which counts if no row has its first.
func New(column, things string, stem func(string) string) *Index {
	return &Index{column, things, stem, map[string]int64{}}
}

// Add adds a row. An empty key names nothing. Two rows with the same key are fault.Corrupt.
func (x *Index) Add(row int64, key string) error {
	if key == "" {
		return nil
	}
	if other, twice := x.rows[key]; twice {
		return fault.New(fault.Corrupt, "column "+x.column, "rows %d and %d both have %q", other, row, key)
	}
	x.rows[key] = row
	return nil
}

// Row returns the row of a name, or -1.
func (x *Index) Row(name string) int64 {
	if row, ok := x.rows[name]; ok {
		return row
	}
	if row, ok := x.rows[x.stem(name)]; ok {
		return row
	}
	return -1
}

// Missing returns the error for a name without a row: fault.NotFound. more is added to its message.
func (x *Index) Missing(name, more string) error {
	keys := fmt.Sprintf("has no %q", name)
	if stem := x.stem(name); stem != name {
		keys = fmt.Sprintf("has neither %q nor %q", name, stem)
	}
	return fault.New(fault.NotFound, "column "+x.column, "%s%s", keys, more)
}

// Match returns a count of the names and rows that belong together.
func (x *Index) Match() *Match { return &Match{x: x, used: map[int64]bool{}} }

// Match counts the names and rows that belong together.
type Match struct {
	x         *Index
	used      map[int64]bool
	unmatched int
	missing   string // the first name without a row
}

// Row returns the row of a name, or -1, and counts it.
func (m *Match) Row(name string) int64 {
	row := m.x.Row(name)
	if row >= 0 {
		m.used[row] = true
		return row
	}
	if m.unmatched == 0 {
		m.missing = name
	}
	m.unmatched++
	return row
}

// Counts returns the number of names without a row, and of the table's rows without a name.
func (m *Match) Counts(rows int64) (unmatched, unused int) {
	return m.unmatched, int(rows) - len(m.used)
}

// Err returns fault.NotFound if a name has no row.
func (m *Match) Err() error {
	note := ""
	switch {
	case m.unmatched == 0:
		return nil
	case m.unmatched > 1:
		note = fmt.Sprintf(", and none for %d more %s", m.unmatched-1, m.x.things)
	}
	return m.x.Missing(m.missing, note)
}
