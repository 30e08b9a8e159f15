package join

import (
	"fmt"

	"github.com/chaski-eo/chaski/fault"
)

// Rows are the rows of a table, by their keys, that belong to files or samples. A row may belong to several.
type Rows struct {
	// Of has for each file the number of its row, -1 for none.
	Of []int64
	// Unmatched is the number of files without a row.
	Unmatched int

	missing, stem string // the first one
}

// RowsOf finds the rows of files. stem returns the name of a file without its ending, whatever that is: it counts if no
// row has the ending.
func (n *Names) RowsOf(files []string, stem func(string) string) *Rows {
	out, found := &Rows{Of: make([]int64, len(files))}, make([]Match, len(files))
	nearest := make([]Near, len(n.list))
	for i, file := range files {
		best, ok := n.Best(file, file)
		if best.Near < written {
			name := stem(file)
			if other, isOther := n.Best(name, name); other.Near > best.Near {
				best, ok = other, isOther
			}
		}
		if ok && !best.Several {
			found[i], nearest[best.Name] = best, max(nearest[best.Name], best.Near)
		}
	}
	for i, m := range found {
		if out.Of[i] = int64(m.Name); m.Near > 0 && (m.Near >= written || m.Near == nearest[m.Name]) {
			continue
		}
		out.Of[i] = -1
		if out.Unmatched++; out.Unmatched == 1 {
			out.missing, out.stem = files[i], stem(files[i])
		}
	}
	return out
}

// Unused returns how many of a number of rows belong to no file.
func (r *Rows) Unused(rows int) int {
	used := map[int64]bool{}
	for _, row := range r.Of {
		if row >= 0 && !used[row] {
			used[row] = true
			rows--
		}
	}
	return rows
}

// Err returns fault.NotFound if a file has no row. things names the files.
func (r *Rows) Err(column, things string) error {
	if r.Unmatched == 0 {
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
