package containers

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// TestTimesOfLevelOne: conditions on times that only level 1 has leave the samples above a row that meets them, and
// below these the rows that meet all. Columns of dates and times have their unit.
func TestTimesOfLevelOne(t *testing.T) {
	const day = 24 * 3600 * 1_000_000
	var times, days []int64
	set := &sampleTrees{}
	for i := range 4 { // sample i has the days i and 2·i of 1970
		set.samples = append(set.samples, folder(fmt.Sprint("s", i), bytesOf("a"), bytesOf("b")))
		days = append(days, int64(i), int64(2*i))
	}
	for _, d := range days {
		times = append(times, d*day)
	}
	set.columns = []*tables.Table{nil, tables.FromVectors([]string{"stac:time_start", "day"}, []*tables.Vector{
		tables.NewInts(tables.Type{Kind: tables.Timestamp}, times, nil),
		tables.NewInts(tables.Type{Kind: tables.Date}, days, nil)})}
	path, o := set.write(t, filepath.Join(t.TempDir(), "c.tacozip"), build.ZIP), options(t)
	container := opened(t, o, []string{path})
	for _, ranges := range [][][2]int{{{2, 3}}, {{0, 9}}, {{1, 2}, {2, 5}}, {{4, 6}, {0, 3}}, {{0, 1}, {4, 6}}} {
		for _, level := range []string{"", `, "level": 1`} {
			var where []spec.Condition
			meets := func(row int) bool { return true }
			for _, r := range ranges {
				before, c := meets, spec.Condition{}
				text := fmt.Sprintf(`{"datetime": "1970-01-%02d/1970-01-%02d"%s}`, r[0]+1, r[1]+1, level)
				if err := json.Unmarshal([]byte(text), &c); err != nil {
					t.Fatal(err)
				}
				where = append(where, c)
				meets = func(row int) bool { return before(row) && int(days[row]) >= r[0] && int(days[row]) <= r[1] }
			}
			var samples, rows []string
			for row := range days {
				// A sample must have a row for each condition, which need not be the same one.
				some := !slices.ContainsFunc(ranges, func(r [2]int) bool {
					in := func(d int64) bool { return int(d) >= r[0] && int(d) <= r[1] }
					return !in(days[row/2*2]) && !in(days[row/2*2+1])
				})
				if some && row%2 == 0 {
					samples = append(samples, fmt.Sprintf(`"s%d"`, row/2))
				}
				if some && meets(row) {
					rows = append(rows, fmt.Sprintf(`"s%d/%c"`, row/2, 'a'+row%2))
				}
			}
			named, err := container.Tables(t.Context(), where, o)
			if err != nil {
				t.Fatal(ranges, level, err)
			}
			for sql, want := range map[string][]string{"SELECT id AS x FROM data": samples,
				`SELECT "l0:id" || '/' || "l1:id" AS x FROM below1`: rows} {
				table, err := query.Run(t.Context(), sql, named)
				if err != nil {
					t.Fatal(err)
				}
				if got := cells(t, table)["x"]; !slices.Equal(got, want) {
					t.Errorf("%v%s: %s: %q, want %q", ranges, level, sql, got, want)
				}
			}
		}
	}
	made, err := table(t, spec.Spec{Source: path, Fields: []spec.Field{{Name: "id"}}}, o)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]time.Duration{"b@day": 24 * time.Hour, "a@stac:time_start": time.Microsecond,
		"id": 0} {
		if column, err := made.Column(t.Context(), name); err != nil || column.Unit != want {
			t.Errorf("%s: %v, %v", name, column.Unit, err)
		}
	}
}

// TestStrictGroups: containers of a group that must have the same columns have them on all levels.
func TestStrictGroups(t *testing.T) {
	dir, o := t.TempDir(), options(t)
	set := &sampleTrees{samples: []build.Sample{folder("s", bytesOf("a"))}}
	plain := set.write(t, filepath.Join(dir, "plain.tacozip"), build.ZIP)
	set.columns = []*tables.Table{nil,
		tables.FromVectors([]string{"more"}, []*tables.Vector{tables.NewStrings([]string{"x"}, nil)})}
	more := set.write(t, filepath.Join(dir, "more.tacozip"), build.ZIP)
	for _, paths := range [][]string{{plain, plain, more}, {plain, more, plain}} {
		where := []spec.Condition{{Concat: []spec.Group{{Paths: 2, Columns: "strict"}, {Paths: 1}}}}
		_, err := opened(t, o, paths).Samples(t.Context(), spec.Subset{Where: where}, o)
		same := paths[0] == paths[1]
		if same != (err == nil) || !same && !strings.Contains(err.Error(), "columns more") {
			t.Errorf("%q: %v", paths, err)
		}
	}
}
