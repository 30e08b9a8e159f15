package flags

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/containers"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
)

// Filter has the flags that choose samples.
type Filter struct {
	Where, OrderBy         string
	bbox, bboxCRS          string
	rule, geometry         string
	datetime, timeCol      string
	atLevel, Limit, Offset int
}

// noLimit is the default of --limit: 0 rows is a limit.
const noLimit = -1

// Add adds the flags that choose, sort and count rows.
func (f *Filter) Add(fl *pflag.FlagSet) {
	f.addFilters(fl)
	console.Var(fl, &f.OrderBy, "order-by", "")
	console.CountVar(fl, &f.Limit, "limit", noLimit, 0)
	// Without it pflag would print (default -1), which contradicts the text.
	fl.Lookup("limit").DefValue = "0"
	console.CountVar(fl, &f.Offset, "offset", 0, 0)
}

// addFilters adds the flags that choose rows, without those that sort and count them: a run has an
// order of its own.
func (f *Filter) addFilters(fl *pflag.FlagSet) {
	console.NonEmptyVar(fl, &f.Where, "where")
	console.NonEmptyVar(fl, &f.bbox, "bbox")
	console.NonEmptyVar(fl, &f.bboxCRS, "bbox-crs")
	console.ChoiceVar(fl, &f.rule, "bbox-rule", "intersects", "intersects", "within")
	console.Var(fl, &f.geometry, "geometry-col", "")
	console.NonEmptyVar(fl, &f.datetime, "datetime")
	console.Var(fl, &f.timeCol, "time-col", "")
	console.CountVar(fl, &f.atLevel, "at-level", 0, 0)
}

// check refuses flags that lack another.
func (f *Filter) check() error {
	switch {
	case f.bbox == "" && (f.rule != "intersects" || f.geometry != "" || f.bboxCRS != ""):
		return console.Usagef("--bbox-crs, --bbox-rule and --geometry-col need --bbox")
	case f.datetime == "" && f.timeCol != "":
		return console.Usagef("--time-col is %q: it needs --datetime", f.timeCol)
	case f.bbox == "" && f.datetime == "" && f.atLevel != 0:
		return console.Usagef("--at-level is %d: it needs --bbox or --datetime", f.atLevel)
	}
	return nil
}

// places returns --bbox and --datetime as conditions of a spec.
func (f *Filter) places() (list []loader.Condition, err error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.bbox != "" {
		sides, err := f.sides()
		if err != nil {
			return nil, err
		}
		epsg, err := f.epsg()
		if err != nil {
			return nil, err
		}
		list = append(list, loader.Condition{BBox: &sides, BBoxCRS: epsg, Within: f.rule == "within",
			Column: f.geometry, Level: f.atLevel})
	}
	if f.datetime != "" {
		list = append(list, loader.Condition{Datetime: f.datetime, Column: f.timeCol, Level: f.atLevel})
	}
	return list, nil
}

// TacoFilter returns the filter of --bbox and --datetime, or nil if neither is set.
func (f *Filter) TacoFilter() (out *spacetime.Filter, err error) {
	list, err := f.places()
	for i := range list {
		filter, err := rows.Filter(&list[i])
		if err != nil {
			return nil, console.Usagef("--%w", err) // errors of conditions begin with the name of the flag
		}
		if out == nil {
			out = &filter
			continue
		}
		out.Times, out.Time = filter.Times, filter.Time
	}
	return out, err
}

// sides returns west, south, east and north of --bbox.
func (f *Filter) sides() (v [4]float64, err error) {
	parts := strings.Split(f.bbox, ",")
	for i := range v {
		if len(parts) == len(v) {
			v[i], err = strconv.ParseFloat(strings.TrimSpace(parts[i]), 64)
		}
		if len(parts) != len(v) || err != nil {
			return v, console.Usagef("--bbox is %q: it must be four numbers W,S,E,N", f.bbox)
		}
	}
	return v, nil
}

// epsg returns the code of --bbox-crs, or 0 if the flag is not set.
func (f *Filter) epsg() (code spec.EPSG, err error) {
	if f.bboxCRS != "" {
		err = code.UnmarshalJSON([]byte(f.bboxCRS))
	}
	// A spec may say null, and has no code then.
	if err != nil || f.bboxCRS != "" && code == 0 {
		return 0, console.Usagef("--bbox-crs is %q: it must be an EPSG code, such as EPSG:32633 or 32633", f.bboxCRS)
	}
	return code, nil
}

// conditions returns the flags as conditions of a spec.
func (f *Filter) conditions() ([]loader.Condition, error) {
	// Only for its checks: a spec checks its conditions too, but its errors would not name the flags.
	if _, err := f.TacoFilter(); err != nil {
		return nil, err
	}
	list, err := f.places()
	if f.Where != "" {
		list = slices.Insert(list, 0, loader.Condition{SQL: f.Where})
	}
	return list, err
}

// Samples returns the rows of level 0 of a container that the flags choose, in their order.
func (f *Filter) Samples(ctx context.Context, d containers.Set) (rows []int, err error) {
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
	return f.Choose(ctx, d, 0, rows)
}

// Choose returns the rows of a level of a container, among some, that --where chooses, in the order of --order-by.
func (f *Filter) Choose(ctx context.Context, d containers.Set, level int, rows []int) ([]int, error) {
	table, err := d.Level(ctx, level)
	if err != nil {
		return nil, err
	}
	rows, err = chooseRows(ctx, table, rows, f.Where, f.OrderBy)
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

// chooseRows returns the rows for which the SQL condition where holds, sorted by orderBy,
// "COLUMN [asc | desc]". Both may be empty. rows are row numbers of t.
func chooseRows(ctx context.Context, t *tables.Table, rows []int, where, orderBy string) ([]int, error) {
	if where != "" {
		found, err := query.Where(ctx, t, where)
		if err != nil {
			return nil, console.UsageUnlessFault(err)
		}
		rows = Among(slices.Clone(rows), found)
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

// Among keeps the rows that are among others, which need to ascend. It changes rows.
func Among(rows, others []int) []int {
	return slices.DeleteFunc(rows, func(row int) bool {
		_, ok := slices.BinarySearch(others, row)
		return !ok
	})
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
