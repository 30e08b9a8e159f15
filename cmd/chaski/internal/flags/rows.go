package flags

import (
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query"
)

// ChooseRows returns the rows for which the SQL condition where holds, sorted by orderBy,
// "COLUMN [asc | desc]". Both may be empty. rows are row numbers of t.
func ChooseRows(ctx context.Context, t *tables.Table, rows []int, where, orderBy string) ([]int, error) {
	if where != "" {
		found, err := query.Where(ctx, t, where)
		if err != nil {
			return nil, console.UsageUnlessFault(err)
		}
		rows = slices.DeleteFunc(slices.Clone(rows), func(r int) bool {
			_, ok := slices.BinarySearch(found, r)
			return !ok
		})
	}
	if orderBy == "" {
		return rows, nil
	}
	name, desc := orderColumn(orderBy)
	in := t.Take(rows)
	if in.Index(name) < 0 {
		// Names of columns ignore case, as in SQL, unless one matches exactly.
		for _, c := range t.Columns() {
			if strings.EqualFold(c.Name, name) {
				name = c.Name
				break
			}
		}
	}
	order, err := query.Sort(ctx, in, name, desc)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(order))
	for i, k := range order {
		out[i] = rows[k]
	}
	return out, nil
}

// orderColumn splits "COLUMN [asc | desc]". The column may be in double quotes, as in SQL.
func orderColumn(s string) (name string, desc bool) {
	name = strings.TrimSpace(s)
	if i := strings.LastIndexByte(name, ' '); i > 0 {
		switch word := strings.ToLower(name[i+1:]); word {
		case "asc", "desc":
			name, desc = strings.TrimSpace(name[:i]), word == "desc"
		}
	}
	if n := len(name); n > 2 && name[0] == '"' && name[n-1] == '"' {
		name = strings.ReplaceAll(name[1:n-1], `""`, `"`)
	}
	return name, desc
}
