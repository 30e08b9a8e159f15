package containers

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// askedContainers are containers of several levels, of one file and of several, by their paths.
func askedContainers(t *testing.T) [][]string {
	data := corpus.Testdata(t)
	parts := filepath.Join(data, "coast", "parts")
	sets := [][]string{{filepath.Join(data, "coast", "coast_dir")}, {filepath.Join(data, "taco3", "scenes.zip")},
		{filepath.Join(parts, "coast_south.tacozip"), filepath.Join(parts, "coast_north.tacozip")}}
	for _, c := range rowsOfCorpus(t, "case") {
		count := 0
		for _, n := range c.Levels {
			count += n
		}
		if c.Family != streaming && count > 0 && count < 60 {
			sets = append(sets, c.At())
		}
	}
	return sets
}

// deepBox returns a box of a query about the places of level 2, as a condition, and another one.
func deepBox(t *testing.T) (one, other string) {
	for _, c := range rowsOfCorpus(t, "query") {
		if c.Level == 2 && c.BBox != nil && c.N > 0 && c.N < 4 {
			box, err := json.Marshal(c.BBox)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf(`{"bbox": %s, "level": 2}`, box), `{"bbox": [-180, -90, 0, 90], "level": 2}`
		}
	}
	t.Fatal("no query")
	return "", ""
}

// cells returns the values of a table by column, as JSON.
func cells(t *testing.T, table *tables.Table) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for i, c := range table.Columns() {
		v, err := table.At(t.Context(), i)
		if err != nil {
			t.Fatal(c.Name, err)
		}
		out[c.Name] = make([]string, table.Len())
		for row := range table.Len() {
			out[c.Name][row] = string(v.AppendJSON(nil, row))
		}
	}
	return out
}

// asked is a dataset with the answers to look at.
type asked struct {
	t     *testing.T
	name  string
	set   Set
	where []spec.Condition
	names query.Tables
}

func (a *asked) table(name string) *tables.Table {
	a.t.Helper()
	table, err := a.names(a.t.Context(), name)
	if err != nil {
		a.t.Fatal(a.name, name, err)
	}
	return table
}

// line returns the rows above a row of a level, from level 0 on, and the row itself.
func (a *asked) line(level, row int) []int {
	line := make([]int, level+1)
	for k := level; ; k-- {
		if line[k] = row; k == 0 {
			return line
		}
		parents, err := a.set.Parents(a.t.Context(), k)
		if err != nil {
			a.t.Fatal(err)
		}
		row = int(parents[row])
	}
}

// below returns the rows of a level below samples, in the order of the samples, that are no padding and that
// conditions on places leave, by looking at each of them.
func (a *asked) below(samples []int32, level int) (list []int) {
	visible, err := a.set.Visible(a.t.Context(), level)
	if err != nil {
		a.t.Fatal(err)
	}
	left := func(row int) bool {
		line := a.line(level, row)
		for _, c := range a.where {
			if c.BBox == nil {
				continue
			}
			box, _, err := c.Place()
			if err != nil {
				a.t.Fatal(err)
			}
			chosen, err := a.set.Select(a.t.Context(), spacetime.Filter{Box: box, Level: c.Level})
			if err != nil {
				a.t.Fatal(err)
			}
			for k := 1; k < min(len(chosen), len(line)); k++ {
				if !slices.Contains(chosen[k], line[k]) {
					return false
				}
			}
		}
		return true
	}
	for _, sample := range samples {
		for _, row := range visible {
			if a.line(level, row)[0] == int(sample) && left(row) {
				list = append(list, row)
			}
		}
	}
	return list
}

// TestTables: the tables that queries name have the rows that a slow search finds below the samples, with the columns
// of the levels above, and what the container says of their bytes.
func TestTables(t *testing.T) {
	o := options(t)
	one, other := deepBox(t)
	asking := 0
	for _, paths := range askedContainers(t) {
		set := opened(t, o, paths)
		for _, text := range []string{`[]`, `[{"select": "SELECT * FROM data ORDER BY 1 DESC LIMIT 5"}]`,
			`[` + one + `]`, `[` + one + `,` + other + `]`,
			`[` + other + `,{"select": "SELECT * FROM data LIMIT 1"}]`} {
			a := &asked{t: t, name: fmt.Sprint(filepath.Base(paths[0]), text), set: set}
			if err := json.Unmarshal([]byte(text), &a.where); err != nil {
				t.Fatal(err)
			}
			found, err := set.Samples(t.Context(), spec.Subset{Where: a.where}, o)
			if err != nil { // no places
				continue
			}
			if a.names, err = set.Tables(t.Context(), a.where, o); err != nil {
				t.Fatal(a.name, err)
			}
			if got := a.table("data").Len(); got != len(found.Rows) {
				t.Errorf("%s: data has %d rows, want %d", a.name, got, len(found.Rows))
			}
			for level := range set.Levels() {
				a.checkBelow(level, found.Rows)
				a.checkEntries(level, found.Rows)
				asking++
			}
		}
	}
	if asking < 80 {
		t.Errorf("%d levels", asking)
	}
}

// checkBelow compares the table "below" of a level.
func (a *asked) checkBelow(level int, samples []int32) {
	got, want := cells(a.t, a.table(fmt.Sprint("below", level))), map[string][]string{}
	list := a.below(samples, level)
	for k := range level + 1 {
		table, err := a.set.Level(a.t.Context(), k)
		if err != nil {
			a.t.Fatal(err)
		}
		for name, values := range cells(a.t, table) {
			if strings.HasPrefix(name, "internal:") {
				continue
			}
			column := []string{}
			for _, row := range list {
				column = append(column, values[a.line(level, row)[k]])
			}
			want[fmt.Sprintf("l%d:%s", k, name)] = column
		}
	}
	want[FolderColumn], want[VSIColumn] = []string{}, []string{}
	for _, row := range list {
		e, err := a.set.Entry(a.t.Context(), level, row)
		if err != nil {
			a.t.Fatal(err)
		}
		path, err := json.Marshal(e.VSI())
		if err != nil {
			a.t.Fatal(err)
		}
		want[FolderColumn] = append(want[FolderColumn], map[bool]string{true: "1", false: "0"}[e.Folder])
		want[VSIColumn] = append(want[VSIColumn], string(path))
	}
	for name := range want {
		if !slices.Equal(got[name], want[name]) {
			a.t.Errorf("%s: below%d: %s is %q, want %q", a.name, level, name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		a.t.Errorf("%s: below%d has %d columns, want %d", a.name, level, len(got), len(want))
	}
}

// checkEntries compares the table "entries" of a level.
func (a *asked) checkEntries(level int, samples []int32) {
	list := a.below(samples, level)
	if level > 0 {
		slices.Sort(list)
	}
	want := map[string][]string{}
	for _, row := range list {
		e, err := a.set.Entry(a.t.Context(), level, row)
		if err != nil {
			a.t.Fatal(err)
		}
		parent := -1
		if level > 0 {
			parent = a.line(level, row)[level-1]
		}
		for name, v := range map[string]any{"row": row, "parent": parent, "offset": e.Offset, "size": e.Size,
			"id": e.ID, "uri": e.URI, "folder": map[bool]int{true: 1, false: 0}[e.Folder]} {
			text, err := json.Marshal(v)
			if err != nil {
				a.t.Fatal(err)
			}
			want[name] = append(want[name], string(text))
		}
	}
	got := cells(a.t, a.table(fmt.Sprint("entries", level)))
	for name, values := range got {
		if !slices.Equal(values, want[name]) {
			a.t.Errorf("%s: entries%d: %s is %q, want %q", a.name, level, name, values, want[name])
		}
	}
	if len(got) != 7 {
		a.t.Errorf("%s: entries%d has %d columns", a.name, level, len(got))
	}
}

// TestFingerprint: the fingerprint of a container is the digest that the comment of hash describes, of what its table
// gives.
func TestFingerprint(t *testing.T) {
	data := corpus.Testdata(t)
	image := spec.Field{Name: "image", Column: "s2/img.tif"}
	for source, fields := range map[string][]spec.Field{
		"coast/coast.tacozip": {image, {Name: "rank"}, {Name: "cloud", Column: "cloud_cover"}, {Name: "region"},
			{Name: "haze", Column: "s2/img.tif@haze"}, {Name: "path", Column: "s2/img.tif", Kind: "text"}},
		"coast/coast_dir": {image, {Name: "rank"}},
		"taco3/scenes.zip": {{Name: "seq", Column: "seq/t"}, {Name: "id"}, {Name: "ml:cloud"},
			{Name: "shape", Column: "stac:proj_shape", Kind: "number"}},
	} {
		sp, o := spec.Spec{Source: filepath.Join(data, source), Fields: fields, BatchSize: 1}, options(t)
		table, err := survey.OpenTable(t.Context(), &sp, &o)
		if err != nil {
			t.Error(source, err)
			continue
		}
		want := digest.New()
		_, _ = want.WriteString("chaski container 1\n")
		want.Number(uint64(table.N))
		want.Number(uint64(len(table.Fields)))
		for row := range table.N {
			id, err := table.ID(t.Context(), row)
			if err != nil {
				t.Fatal(err)
			}
			want.Record([]byte(id))
		}
		for i, field := range table.Fields {
			_, _ = want.WriteString(string(rune(field.Kind)))
			for row := range table.N {
				if i < len(fields) && fields[i].Name == "path" {
					want.Record(nil)
					continue
				}
				if field.Kind == catalog.Raster {
					asset, err := field.Asset(t.Context(), row)
					size := uint64(asset.Length)
					if fault.KindOf(err) == fault.NotFound || asset.Member == "" {
						size = math.MaxUint64
					} else if err != nil {
						t.Fatal(source, err)
					}
					want.Number(size)
					continue
				}
				v, err := field.Value(t.Context(), row)
				if err != nil {
					t.Fatal(source, err)
				}
				v.Hash(want, field.Kind) // see TestRecords
			}
		}
		if want.Hex() != table.Fingerprint {
			t.Errorf("%s: fingerprint %s, want %s", source, table.Fingerprint, want.Hex())
		}
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	}
}
