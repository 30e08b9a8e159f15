package build_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// values reads the values of metadata columns, a string a row.
func values(t *testing.T, tab *catalog.Table, fields int) (rows []string) {
	t.Helper()
	for row := range tab.Len() {
		var parts []string
		for f := range fields {
			v, err := tab.Value(t.Context(), f, row)
			if err != nil {
				t.Fatal(err)
			}
			if v.Null {
				parts = append(parts, "null")
				continue
			}
			parts = append(parts, map[catalog.Kind]string{catalog.Int: fmt.Sprint(v.Int),
				catalog.Float: fmt.Sprint(v.Float), catalog.Text: fmt.Sprintf("%q", v.Text)}[tab.Kind(f)])
		}
		rows = append(rows, strings.Join(parts, " "))
	}
	return rows
}

// TestJoin finds the row of a file by URI before stem, and keeps kind, value and nulls of the columns.
func TestJoin(t *testing.T) {
	dir := folder.Of(t, "001.tif", "sub/002.tif", "sub/003.v2.tif",
		"t.csv=id,label,cloud,note,code\n003.v2,3,0.5,\"a, "+
			"b\",007\n001,1,,x,\n002,99,9,wrong,9\nsub/002.tif,2,1e3,,8\nelse,5,5,5,5\n")
	type entry struct {
		ID    string   `parquet:"id"`
		Label int32    `parquet:"label"`
		Cloud *float64 `parquet:"cloud,optional"`
		Note  *string  `parquet:"note,optional"`
		Code  *int64   `parquet:"code,optional"`
	}
	f := func(v float64) *float64 { return &v }
	s := func(v string) *string { return &v }
	i := func(v int64) *int64 { return &v }
	if err := parquet.WriteFile(filepath.Join(dir, "t.parquet"), []entry{
		{"003.v2", 3, f(0.5), s("a, b"), i(7)}, {"001", 1, nil, s("x"), nil}, {"002", 99, f(9), s("wrong"), i(9)},
		{"sub/002.tif", 2, f(1e3), nil, i(8)}, {"else", 5, f(5), s("5"), i(5)},
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{`"001" 1 null "x" null`, `"sub/002.tif" 2 1000 null 8`, `"003.v2" 3 0.5 "a, b" 7`}
	for _, table := range []string{"t.csv", "t.parquet"} {
		file := filepath.Join(dir, table+".catalog.parquet")
		var c build.Counts
		paths := []string{filepath.Join(dir, "001.tif"), filepath.Join(dir, "sub")}
		folder.Index(t, file, build.Options{Join: &build.Join{Table: filepath.Join(dir, table), On: "id"},
			Counts: &c}, paths...)
		if c != (build.Counts{Rows: 3, Unused: 2}) {
			t.Errorf("%s: %+v", table, c)
		}
		var fields []catalog.Source
		for _, name := range []string{"id", "label", "cloud", "note", "code"} {
			// among the columns of strings: one of the ids is "sub/002.tif"
			fields = append(fields, catalog.Source{Field: name, Column: name, Kind: catalog.Text})
		}
		got := values(t, folder.Open(t, file, catalog.Options{}, fields...), len(fields))
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %q, want %q", table, got, want)
		}
		// It is the catalog that it is without the table.
		plain := filepath.Join(dir, "plain.parquet")
		folder.Index(t, plain, build.Options{}, paths...)
		if a, b := folder.Open(t, file, catalog.Options{}),
			folder.Open(t, plain, catalog.Options{}); a.Fingerprint() != b.Fingerprint() {
			t.Error("another fingerprint")
		}
		if a, b := rowsOf(t, file), rowsOf(t, plain); len(a) != 3 || !equalRows(a["001.tif"], b["001.tif"]) {
			t.Errorf("%v, want %v", a, b)
		}
		// And so it is if its rows are used again, with the table or without.
		folder.Index(t, plain, build.Options{Previous: []string{file}, Counts: &c}, paths...)
		if c.Reused != 3 {
			t.Errorf("%+v", c)
		}
		folder.Index(t, file+"2.parquet", build.Options{Previous: []string{plain}, Counts: &c,
			Join: &build.Join{Table: filepath.Join(dir, table), On: "id"}}, paths...)
		if got := values(t, folder.Open(t, file+"2.parquet", catalog.Options{}, fields...),
			len(fields)); c.Reused != 3 ||
			strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s again: %q, %+v", table, got, c)
		}
	}
}

// TestJoinWithoutPartner refuses files without a row, unless they may have nulls.
func TestJoinWithoutPartner(t *testing.T) {
	dir := folder.Of(t, "a.tif", "b.tif", "c.tif", "t.csv=id,label,text,blank\nb,7,x,\n")
	o := build.Options{Base: dir, Join: &build.Join{Table: filepath.Join(dir, "t.csv"), On: "id"}}
	_, err := build.Write(t.Context(), &bytes.Buffer{}, []string{dir}, o)
	if !errors.Is(err, fault.NotFound) || !strings.Contains(err.Error(), `"a.tif"`) ||
		!strings.Contains(err.Error(), "1 more") {
		t.Errorf("%v", err)
	}
	o.Join.Left = true
	file := filepath.Join(dir, "c.parquet")
	var c build.Counts
	o.Counts = &c
	folder.Index(t, file, o, dir)
	tab := folder.Open(t, file, catalog.Options{}, catalog.Source{Field: "label", Column: "label"},
		catalog.Source{Field: "text", Column: "text"})
	if got := strings.Join(values(t, tab, 2), ","); got != `null null,7 "x",null null` ||
		c != (build.Counts{Rows: 3, Unmatched: 2}) {
		t.Errorf("%s, %+v", got, c)
	}
}

// TestJoinAndSkip promises that the row of a file is that of its path, also after skipped files.
func TestJoinAndSkip(t *testing.T) {
	dir := folder.Of(t, "a.tif", "b.tif=bad", "c.tif", "t.csv=id,label\na,1\nb,2\nc,3\n")
	file := filepath.Join(dir, "c.parquet")
	folder.Index(t, file, build.Options{Join: &build.Join{Table: filepath.Join(dir, "t.csv"), On: "id"},
		Skipped: func(string, error) {}}, dir)
	if got := strings.Join(values(t,
		folder.Open(t, file, catalog.Options{}, catalog.Source{Field: "label", Column: "label"}), 1),
		","); got != "1,3" {
		t.Errorf("%s", got)
	}
}

// TestJoinOfAnyName: the name of a column may have signs that mean something in other places.
func TestJoinOfAnyName(t *testing.T) {
	const name = "a, \"b\" `c`\\d"
	dir := folder.Of(t, "a.tif", "t.csv=id,\""+strings.ReplaceAll(name, `"`, `""`)+"\"\na,7\n")
	file := filepath.Join(dir, "c.parquet")
	folder.Index(t, file, build.Options{Join: &build.Join{Table: filepath.Join(dir, "t.csv"), On: "id"}}, dir)
	source := catalog.Source{Field: "label", Column: name}
	if got := strings.Join(values(t, folder.Open(t, file, catalog.Options{}, source), 1), ","); got != "7" {
		t.Errorf("%s", got)
	}
}

func TestJoinThatIsWrong(t *testing.T) {
	for _, c := range []struct {
		table string
		kind  fault.Kind
	}{
		{"no,label\na,1\n", fault.NotFound}, {"id,size\na,1\n", fault.Unsupported}, {"id,\na,1\n", fault.Unsupported},
		{"id,label\na,1\na,2\n", fault.Corrupt}, {"id,label\na\n", fault.Corrupt},
	} {
		dir := folder.Of(t, "a.tif", "t.csv="+c.table)
		_, err := build.Write(t.Context(), &bytes.Buffer{}, []string{dir},
			build.Options{Join: &build.Join{Table: filepath.Join(dir, "t.csv"), On: "id"}})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), "t.csv") {
			t.Errorf("%q: %v", c.table, err)
		}
	}
	dir := folder.Of(t, "a.tif", "t.xyz=id\na\n")
	for table, kind := range map[string]fault.Kind{"t.xyz": fault.Unsupported, "none.csv": fault.NotFound} {
		_, err := build.Write(t.Context(), &bytes.Buffer{}, []string{dir},
			build.Options{Join: &build.Join{Table: filepath.Join(dir, table), On: "id"}})
		if !errors.Is(err, kind) {
			t.Errorf("%s: %v", table, err)
		}
	}
}
