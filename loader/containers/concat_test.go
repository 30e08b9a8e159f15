package containers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/containers"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// rowsOf returns the columns of a table, and each row's cells as JSON by the column's name.
func rowsOf(t *testing.T, tbl *tables.Table) (columns []string, rows []map[string]string) {
	t.Helper()
	rows = make([]map[string]string, tbl.Len())
	for i := range rows {
		rows[i] = map[string]string{}
	}
	for i, c := range tbl.Columns() {
		columns = append(columns, c.Name)
		v, err := tbl.At(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		for k := range rows {
			rows[k][c.Name] = string(v.AppendJSON(nil, k))
		}
	}
	return columns, rows
}

// TestConcatOfConditions: groups of containers yield the rows of each group in turn, with the
// columns that the mode keeps. Queries see these rows as `data`, and the levels hold the rows below
// them.
func TestConcatOfConditions(t *testing.T) {
	race.SkipCovered(t)
	files := &openers.Files{}
	defer files.Close()
	north := coast(t, "parts/coast_north.tacozip")
	middle := coast(t, "parts/coast_middle.tacozip")
	south := coast(t, "parts/coast_south.tacozip")
	groups := map[string][]string{"north": {north}, "others": {middle, south}, "folder": {coast(t, "coast_dir")}}
	wheres := []string{
		`[]`, `[{"sql": "cloud_cover < 20"}]`,
		`[{"select": "SELECT * FROM data ORDER BY rank DESC LIMIT 3"}]`, `[{"sql": "rank < 0"}]`,
		`[{"select": "SELECT id, rank, region FROM data WHERE rank > 1"}, {"sql": "rank < 10"}]`,
		`[{"bbox": [-63, 37, -61.2, 40]}, {"select": "SELECT region, id, 'x' AS more FROM data"}]`,
		`[{"column": "rank", "op": ">", "value": 2}, ` +
			`{"select": "SELECT d.id, count(*) AS n FROM data d JOIN l2 ON d.id = \"l0:id\" GROUP BY 1"}]`,
	}
	for _, mode := range []column.Mode{column.Intersection, column.FillMissing, column.Strict} {
		for i, x := range wheres {
			for k, y := range wheres {
				var told []string
				a, b := groups["north"], groups["others"]
				if (i+k)%3 == 0 && mode != column.Strict { // the levels of a FOLDER have other columns
					a, b = groups["folder"], groups["north"]
				}
				name := fmt.Sprintf("mode %d, %s and %s", mode, x, y)
				open := func(mode column.Mode, chosen bool, paths ...string) *taco.Dataset {
					t.Helper()
					d, err := taco.Open(t.Context(), files, paths, taco.Options{
						Mode: mode, Chosen: chosen,
						Warn: func(m string) { told = append(told, m) },
					})
					if err != nil {
						t.Fatal(name, err)
					}
					t.Cleanup(func() { d.Close() })
					return d
				}
				choose := func(d *taco.Dataset, where string) (*containers.Samples, error) {
					t.Helper()
					var s loader.Subset
					if err := json.Unmarshal([]byte(where), &s.Where); err != nil {
						t.Fatal(err)
					}
					return containers.Set{Dataset: d}.Samples(t.Context(), s, loader.Options{})
				}
				// The expected rows: each group in turn.
				var want []map[string]string
				var have [][]string
				for j, g := range [][]string{a, b} {
					s, err := choose(open(0, false, g...), []string{x, y}[j])
					if err != nil {
						t.Fatal(name, err)
					}
					columns, rows := rowsOf(t, s.Data)
					columns = slices.DeleteFunc(columns, func(c string) bool { return c == taco.SourceColumn })
					have, want = append(have, columns), append(want, rows...)
				}
				var columns []string
				differ := false
				for _, c := range append(slices.Clone(have[0]), have[1]...) {
					both := slices.Contains(have[0], c) && slices.Contains(have[1], c)
					differ = differ || !both
					if !slices.Contains(columns, c) && (both || mode == column.FillMissing) {
						columns = append(columns, c)
					}
				}

				told = nil
				d := open(mode, true, append(slices.Clone(a), b...)...)
				where := fmt.Sprintf(`[{"concat": [{"paths": %d, "where": %s}, {"paths": %d, "where": %s}]}]`,
					len(a), x, len(b), y)
				s, err := choose(d, where)
				if differ && mode == column.Strict {
					if fault.KindOf(err) != fault.Unsupported {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				gotColumns, got := rowsOf(t, s.Data)
				if !slices.Equal(gotColumns, append(slices.Clone(columns), taco.SourceColumn)) ||
					len(got) != len(want) {
					t.Errorf("%s: columns %q, %d rows, want %q, %d", name, gotColumns, len(got), columns, len(want))
					continue
				}
				for r := range got {
					for _, c := range columns {
						w, ok := want[r][c]
						if !ok {
							w = "null"
						}
						if got[r][c] != w {
							t.Errorf("%s: row %d: %s is %s, want %s", name, r, c, got[r][c], w)
						}
					}
				}
				var lacks []string // what is told of columns that one of the groups lacks
				for j, lacking := range have {
					for _, c := range have[1-j] {
						if !slices.Contains(lacking, c) {
							lacks = append(lacks, fmt.Sprintf("level0: column %q is %s: it is not in dataset %d of 2",
								c, mode.Missing(), j+1))
						}
					}
				}
				slices.Sort(lacks)
				if slices.Sort(told); !slices.Equal(told, lacks) {
					t.Errorf("%s: told %q, want %q", name, told, lacks)
				}
				ids := map[string]bool{}
				for _, r := range got {
					ids[r["id"]] = true
				}
				for level := 1; level < d.Levels(); level++ {
					below, err := s.SQLTable(t.Context(), fmt.Sprint("l", level))
					if err != nil {
						t.Fatal(err)
					}
					_, rows := rowsOf(t, below)
					all, err := d.SQLTable(t.Context(), fmt.Sprint("l", level))
					if err != nil {
						t.Fatal(err)
					}
					n := 0
					_, rest := rowsOf(t, all)
					for _, r := range rest {
						if ids[r["l0:id"]] {
							n++
						}
					}
					for _, r := range rows {
						if !ids[r["l0:id"]] {
							t.Errorf("%s: level %d has %s", name, level, r["l0:id"])
						}
					}
					if len(rows) != n && !strings.HasSuffix(a[0], "coast_dir") { // whose samples the others have too
						t.Errorf("%s: level %d has %d rows, want %d", name, level, len(rows), n)
					}
				}
			}
		}
	}
}

// TestConcatTrains: a loader reads the rows of groups, also of nested groups and with conditions
// after them.
func TestConcatTrains(t *testing.T) {
	for where, want := range map[string][]int64{
		`[{"concat": [{"paths": 1, "where": [{"sql": "rank < 2"}]},
			{"paths": 2, "where": [{"select": "SELECT * FROM data WHERE cloud_cover < 8"}]}]}]`: {0, 1, 5, 9},
		`[{"concat": [{"paths": 2, "where": [
				{"concat": [{"paths": 1}, {"paths": 1, "where": [{"sql": "rank = 6"}]}]},
				{"column": "rank", "op": ">", "value": 2}]},
			{"paths": 1}]}, {"sql": "rank <> 9"}]`: {3, 6, 8, 10, 11},
	} {
		sp := loader.Spec{
			Source: coast(t, "parts/coast_north.tacozip"),
			Fields: []loader.Field{{Name: "image", Column: "s2/img.tif"}, {Name: "rank"}}, BatchSize: 12,
			Container: spec.Container{
				Parts: []string{coast(t, "parts/coast_middle.tacozip"), coast(t, "parts/coast_south.tacozip")},
			},
		}
		if err := json.Unmarshal([]byte(where), &sp.Where); err != nil {
			t.Fatal(err)
		}
		e, err := open(t, sp, loader.Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		if e.Len() != int64(len(want)) {
			t.Errorf("%s: %d samples, want %d", where, e.Len(), len(want))
		}
	}
}

// TestFieldsOfOneGroup: one group of all containers decides how their columns are joined, also for
// fields: a column that some containers lack can be a field if it is filled.
func TestFieldsOfOneGroup(t *testing.T) {
	zip := coast(t, "parts/coast_north.tacozip")
	d, err := taco.Open(t.Context(), &openers.Files{}, []string{zip}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	tbl, err := d.Level(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []int
	_, rows := rowsOf(t, tbl)
	for _, r := range rows {
		n, err := strconv.Atoi(r["internal:offset"]) // which a FOLDER has not
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, n)
	}
	for mode, ok := range map[string]string{
		"fill_missing": "",
		"intersection": "internal:offset",
		"strict":       "not all tables",
	} {
		sp := loader.Spec{
			Source: coast(t, "coast_dir"),
			Fields: []loader.Field{{Name: "at", Column: "internal:offset"}}, BatchSize: len(want),
		}
		sp.Parts = []string{zip}
		sp.Where = []loader.Condition{
			{Concat: []spec.Group{{Paths: 2, Columns: mode}}},
			{SQL: `"internal:offset" IS NOT NULL`},
		}
		e, err := open(t, sp, loader.Options{})
		if ok != "" {
			if err == nil || !strings.Contains(err.Error(), ok) {
				t.Errorf("%s: %v, want %q", mode, err, ok)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := ranks(first(t, e), "at"); !slices.Equal(got, want) {
			t.Errorf("offsets %v, want %v", got, want)
		}
	}
}

// TestConcatRefuses: invalid groups, groups in the wrong place and groups of other containers are
// refused.
func TestConcatRefuses(t *testing.T) {
	deep := `[]`
	for range 10 {
		deep = `[{"concat": [{"paths": 1, "where": ` + deep + `}]}]`
	}
	cases := map[string]string{
		`[{"concat": []}]`:                                                     "0 groups",
		`[{"concat": [{"paths": 0}]}]`:                                         "0 paths",
		`[{"sql": "rank < 2"}, {"concat": [{"paths": 1}]}]`:                    "before all other",
		`[{"concat": [{"paths": 1}], "sql": "rank < 2"}]`:                      "one of",
		`[{"concat": [{"paths": 1}], "level": 1}]`:                             "take no",
		`[{"concat": [{"paths": 1, "columns": "some"}]}]`:                      "column mode",
		`[{"concat": [{"paths": 1, "where": [{"column": "x"}]}]}]`:             "operator",
		`[{"concat": [{"paths": 2}]}]`:                                         "there are 1",
		`[{"concat": [{"paths": 1, "where": [{"select": "SELECT 1 AS x"}]}]}]`: "no column",
		`[{"concat": [{"paths": 1, "where": [{"sql": "nothing = 1"}]}]}]`:      "nothing",
		deep: "others",
	}
	for where, want := range cases {
		sp := loader.Spec{Source: coast(t, "coast.tacozip"), Fields: []loader.Field{{Name: "rank"}}, BatchSize: 2}
		if err := json.Unmarshal([]byte(where), &sp.Where); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t, sp, loader.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", where, err, want)
		}
	}
	// Two of three containers must have the same columns, and a query after groups names a table.
	north := coast(t, "parts/coast_north.tacozip")
	var told bytes.Buffer
	for where, want := range map[string]string{
		`[{"concat": [{"paths": 2, "columns": "strict"}, {"paths": 1}]}]`:            "not all tables",
		`[{"concat": [{"paths": 1}, {"paths": 2}]}, {"select": "SELECT * FROM l9"}]`: `no table "l9"`,
	} {
		sp := loader.Spec{Source: coast(t, "coast_dir"), Fields: []loader.Field{{Name: "rank"}}, BatchSize: 2}
		sp.Parts = []string{north, north}
		if err := json.Unmarshal([]byte(where), &sp.Where); err != nil {
			t.Fatal(err)
		}
		o := loader.Options{Logger: slog.New(slog.NewTextHandler(&told, nil))}
		if _, err := open(t, sp, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", where, err, want)
		}
	}
	const message = `msg="level0: column \"internal:offset\" is left out: it is not in dataset 1 of 2" source=`
	if !strings.Contains(told.String(), message+coast(t, "coast_dir")) {
		t.Errorf("told %s", &told)
	}
	sp := loader.Spec{Source: coast(t, "../demo/coast.tif"), Fields: []loader.Field{{Name: "image"}}, BatchSize: 1}
	sp.Where = []loader.Condition{{Concat: []spec.Group{{Paths: 1}}}}
	if _, err := open(t, sp, loader.Options{}); err == nil {
		t.Error("groups of a raster")
	}
}
