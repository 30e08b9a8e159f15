package flags

import (
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query"
)

// Samples returns the rows of level 0 of a container that the flags choose, in their order.
func (f *Filter) Samples(ctx context.Context, d *taco.Dataset) (rows []int, err error) {
	filter, err := f.TacoFilter()
	switch {
	case err != nil:
		return nil, err
	case filter != nil:
		rows, err = d.Filter(ctx, *filter)
	default:
		rows, err = d.Visible(ctx, 0)
	}
	if err != nil {
		return nil, err
	}
	table, err := d.Level(ctx, 0)
	if err != nil {
		return nil, err
	}
	rows, err = ChooseRows(ctx, table, rows, f.Where, f.OrderBy)
	return rows, fault.WithFile(err, d.Parts()[0])
}

// Cut applies --offset and --limit.
func (f *Filter) Cut(rows []int) []int {
	rows = rows[min(f.Offset, len(rows)):]
	if f.Limit >= 0 {
		rows = rows[:min(f.Limit, len(rows))]
	}
	return rows
}

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
