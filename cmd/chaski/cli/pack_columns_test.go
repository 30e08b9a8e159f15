package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/encode"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// folderOf makes a directory of files with their content, and about.json beside it.
func folderOf(t *testing.T, files map[string]string) (at func(name string) string) {
	t.Helper()
	dir := t.TempDir()
	at = func(name string) string { return filepath.Join(dir, name) }
	files["about.json"] = about
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, at(name), []byte(content))
	}
	return at
}

// TestPackWithMetadata: each sample gets the values of its row, by its id or by that without an extension, whatever the
// order of the rows, and rows and samples that lack the other are counted.
func TestPackWithMetadata(t *testing.T) {
	at := folderOf(t, map[string]string{"in/a.tif": "1", "in/b.tif": "2", "in/c.tif": "3",
		"rows.csv":  "label,name,type\n7,c,x\n-1,a.tif,y\n3,a,z\n,b,\n9,d,w\n",
		"few.csv":   "id,label\nb,5\n",
		"ids.csv":   "id,label\n007,1\n",
		"in2/007":   "1",
		"twice.csv": "id,label\na,1\na,2\nb,3\nc,4\n"})
	pack := func(out string, args ...string) result {
		args = append([]string{"pack", "-o", at(out), "--collection", at("about.json")}, args...)
		return chaski(t.Context(), args...)
	}
	sql := func(out, query string) string { return rowsOf(t, query, at(out)) }
	r := pack("a.tacozip", "--metadata", at("rows.csv"), "--on", "name", at("in"))
	// Row "a" has no sample, because a.tif is named by another; neither has "d".
	if r.code != 0 || !strings.Contains(r.err, "without a sample: 2") {
		t.Fatalf("%s%s", r.out, r.err)
	}
	want := `[["a.tif",-1,"a.tif","y"],["b.tif",null,"b",null],["c.tif",7,"c","x"]]`
	if got := sql("a.tacozip", `SELECT id, label, name, "source:type" FROM data`); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if r := chaski(t.Context(), "verify", at("a.tacozip")); r.code != 0 || r.err != "" {
		t.Errorf("%s%s", r.out, r.err)
	}
	r = pack("b.tacozip", "--metadata", at("few.csv"), "--metadata-left", at("in"))
	want = `[["a.tif",null],["b.tif",5],["c.tif",null]]`
	if got := sql("b.tacozip", `SELECT id, label FROM data`); got != want || !strings.Contains(r.err, "a row in") {
		t.Errorf("%sgot %s, want %s", r.err, got, want)
	}
	// An id is a string, also if all are digits.
	r = pack("c.tacozip", "--metadata", at("ids.csv"), at("in2"))
	if got := sql("c.tacozip", `SELECT id, label FROM data`); got != `[["007",1]]` {
		t.Errorf("%s%s", r.err, got)
	}
	// A container takes columns as a directory does, but none that it has.
	if r := chaski(t.Context(), "pack", "-o", at("d.tacozip"), "--metadata", at("rows.csv"), "--on", "name",
		at("b.tacozip")); r.code != 1 || !strings.Contains(r.err, `already have a column "label": unsupported`) {
		t.Errorf("%d %s", r.code, r.err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--metadata", at("few.csv"), at("in")}, 1, `nor "a", and none for 1 more samples: not`},
		{[]string{"--metadata", at("twice.csv"), at("in")}, 1, `several rows have the key ["a"]: a table`},
		{[]string{"--metadata", at("few.csv"), "--on", "x", at("in")}, 1, `no column "x"`},
		{[]string{"--metadata", at("about.txt"), at("in")}, 1, "about.txt"},
		{[]string{"--collection", at("few.csv"), at("in")}, 1,
			"few.csv: COLLECTION.json: line 1: it must be an object"},
		{[]string{"--on", "id", at("in")}, 2, "need --metadata TABLE"},
		{[]string{"--metadata-left", at("in")}, 2, "need --metadata TABLE"},
		{[]string{"--metadata", at("few.csv"), "--form", "tacocat", at("in")}, 2, "--metadata is for samples"},
	} {
		r := pack("x.tacozip", c.args...)
		if r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%q: exit %d, want %d: %s", c.args, r.code, c.code, r.err)
		}
		if _, err := os.Lstat(at("x.tacozip")); err == nil {
			t.Fatalf("%q wrote something", c.args)
		}
	}
}

// TestPackKeepsTypes: columns of a Parquet table keep their types, lists and all.
func TestPackKeepsTypes(t *testing.T) {
	at := folderOf(t, map[string]string{"in/a.tif": "1", "in/b.tif": "2"})
	given := tables.FromVectors([]string{"id", "small", "lists", "day", "bytes"}, []*tables.Vector{
		tables.NewStrings([]string{"b", "a"}, nil),
		tables.NewInts(tables.Type{Kind: tables.Uint64, Bits: 8}, []int64{200, 1}, nil),
		tables.NewList(tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 32}, []float64{0.5, 2, 3}, nil),
			[]uint32{0, 1, 3}, nil),
		tables.NewInts(tables.Type{Kind: tables.Date}, []int64{20000, 1}, []bool{false, true}),
		tables.NewBytes(tables.Type{Kind: tables.Binary}, []byte{1, 2}, []uint32{0, 2, 2}, nil),
	})
	var b bytes.Buffer
	if err := encode.Table(t.Context(), &b, given); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, at("t.parquet"), b.Bytes())
	r := chaski(t.Context(), "pack", "-o", at("a.tacozip"), "--collection", at("about.json"), "--metadata",
		at("t.parquet"), at("in"))
	if r.code != 0 || r.err != "" {
		t.Fatal(r.err)
	}
	zip := testfile.Read(t, at("a.tacozip"))
	_, schema, _ := strings.Cut(string(zip), "taco:field_schema")
	for _, want := range []string{`"uint8"`, `"list<element: float>"`, `"date32[day]"`, `"binary"`} {
		if !strings.Contains(schema, want) {
			t.Errorf("no column of type %s in %s", want, schema)
		}
	}
	got := rowsOf(t, "SELECT small, lists, day, bytes FROM data", at("a.tacozip"))
	if want := `[[1,[2,3],null,{"hex":""}],[200,[0.5],"2024-10-04",{"hex":"0102"}]]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// rowsOf returns the rows of a query as JSON.
func rowsOf(t *testing.T, query, path string) string {
	t.Helper()
	r := chaski(t.Context(), "sql", "--format", "json", query, path)
	_, rows, _ := strings.Cut(strings.TrimSpace(r.out), `"rows":`)
	return strings.TrimSuffix(rows, "}") + r.err
}

// TestPackDeclaredColumns: columns that a description declares have their types and descriptions in the container, in a
// copy of it, and in an index.
func TestPackDeclaredColumns(t *testing.T) {
	at := folderOf(t, map[string]string{"files/a.bin": "x", "t.csv": "id,code,year\na,007,2024\n",
		"bad.yaml": "columns: {year: {type: int8}}", "columns.yaml": "id: x\ndataset_version: '1'\ndescription: d\n" +
			"licenses: [MIT]\nproviders: [{name: A}]\ntasks: [other]\n" +
			"columns: {code: {type: string}, year: {type: int16, description: Year of it}}"})
	run := func(args ...string) string {
		t.Helper()
		r := chaski(t.Context(), args...)
		if r.code != 0 {
			t.Fatal(args, r.err)
		}
		return r.out
	}
	run("pack", "-o", at("x.tacozip"), "--collection", at("columns.yaml"), "--metadata",
		at("t.csv"), at("files"))
	run("pack", "-o", at("y.tacozip"), at("x.tacozip"))
	run("pack", "-o", at(".tacocat"), at("y.tacozip"))
	run("pack", "-o", at("z"), at("y.tacozip"))
	if got := run("sql", "SELECT code, year FROM data", at("y.tacozip")); !strings.Contains(got, "007") {
		t.Error(got)
	}
	for _, path := range []string{at("z"), at(".tacocat")} {
		var doc struct {
			Fields map[string][][]string `json:"taco:field_schema"`
		}
		b, err := os.ReadFile(filepath.Join(path, "COLLECTION.json"))
		if err == nil {
			err = json.Unmarshal(b, &doc)
		}
		if err != nil {
			t.Fatal(err)
		}
		all := fmt.Sprint(doc.Fields["level0"])
		for _, want := range []string{"[code string ", "[year int16 Year of it]", "[id string Name of"} {
			if !strings.Contains(all, want) {
				t.Errorf("%s: %s, want %s", path, all, want)
			}
		}
	}
	r := chaski(t.Context(), "pack", "-o", at("w"), "--collection", at("bad.yaml"), at("x.tacozip"))
	if r.code != 1 || !strings.Contains(r.err, "2024") {
		t.Error(r.err)
	}
}
