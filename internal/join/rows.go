package join

import (
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// Rows are the rows of a table, by their keys, that belong to files or samples. A row may belong to several.
type Rows struct {
	// Of has for each file the number of its row, -1 for none.
	Of []int64
	// Unmatched is the number of files that lack a row, and Unused the number of rows that lack a file.
	Unmatched, Unused int

	missing, stem string // the first one

	names    *Names
	doubtful Match // with Several
	sample   string
}

// RowsOf finds the rows of files. stem returns the name of a file without its ending, whatever that is: it counts if no
// row has the ending.
func (n *Names) RowsOf(files []string, stem func(string) string) *Rows {
	joined, out := Of(n), &Rows{Of: slices.Repeat([]int64{-1}, len(files)), Unused: len(n.list), names: n}
	for i, file := range files {
		m, _ := n.Best(file, file)
		if m.Near < written {
			if other, _ := n.Best(stem(file), stem(file)); other.Near > m.Near {
				m, file = other, stem(file)
			}
		}
		switch {
		case m.Several && !out.doubtful.Several:
			out.doubtful, out.sample = m, files[i]
		case m.Near > 0 && !m.Several:
			joined.Add(int64(i), file, m)
		}
	}
	for file, row := range joined.Matches() {
		out.Of[file] = int64(row)
	}
	for _, near := range joined.Nearest {
		out.Unused -= int(min(near, 1))
	}
	for i, row := range out.Of {
		if row >= 0 {
			continue
		}
		if out.Unmatched++; out.Unmatched == 1 {
			out.missing, out.stem = files[i], stem(files[i])
		}
	}
	return out
}

// Err returns the error about a file with several rows, or, unless files may lack a row, fault.NotFound about one
// without. things names the files.
func (r *Rows) Err(column, things string, mayLack bool) error {
	switch {
	case r.doubtful.Several:
		return r.names.Several(r.doubtful, r.sample, "column "+column, "write keys that tell them apart into the table")
	case mayLack || r.Unmatched == 0:
		return nil
	}
	keys, note := fmt.Sprintf("has no %q", r.missing), ""
	if r.stem != r.missing {
		keys = fmt.Sprintf("has neither %q nor %q", r.missing, r.stem)
	}
	if r.Unmatched > 1 {
		note = fmt.Sprintf(", and none for %d more %s", r.Unmatched-1, things)
	}
	return fault.New(fault.NotFound, "column "+column, "%s%s", keys, note)
}
