package query

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/named"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// levels reads the tables of a container in a ZIP or a directory: data, level1, … and l0, l1, …
func levels(t testing.TB, path string) map[string]*tables.Table {
	t.Helper()
	files := map[string][]byte{}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		for _, dir := range []string{"METADATA", "."} {
			names, _ := filepath.Glob(filepath.Join(path, dir, "level*.parquet"))
			for _, n := range names {
				b := testfile.Read(t, n)
				files[filepath.Base(n)] = b
			}
		}
	} else {
		z, err := zip.OpenReader(path)
		if err != nil {
			t.Skip("no ZIP")
		}
		defer z.Close()
		for _, f := range z.File {
			if name, ok := strings.CutPrefix(f.Name, "METADATA/"); ok && strings.HasSuffix(name, ".parquet") {
				r, err := f.Open()
				if err != nil {
					t.Fatal(err)
				}
				var b bytes.Buffer
				if _, err := b.ReadFrom(r); err != nil {
					t.Fatal(err)
				}
				files[name] = b.Bytes()
			}
		}
	}
	out := map[string]*tables.Table{}
	var up *tables.Table // l of the level above
	for k := 0; ; k++ {
		b := files[fmt.Sprintf("level%d.parquet", k)]
		if b == nil {
			break
		}
		tab, err := tables.Read(t.Context(), &corpus.Mem{B: b}, 0, int64(len(b)), tables.Options{})
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("level%d", k)
		if k == 0 {
			name = "data"
		}
		out[name] = tab
		mine := tab.Rename(func(n string) string { return fmt.Sprintf("l%d:%s", k, n) })
		if up != nil {
			parent, err := tab.Column(t.Context(), "internal:parent_id")
			if err != nil {
				t.Fatal(err)
			}
			var at []int
			for i := range tab.Len() {
				at = append(at, int(parent.Int(i)))
			}
			mine = tables.Join(up.Take(at), mine)
		}
		up = mine
		out[fmt.Sprintf("l%d", k)] = up
	}
	return out
}

// answer is a query of the manifest.
type answer struct {
	Type, Op, SQL, Error, Reader string
	Path                         any
	N                            int
	Columns                      any
	Rows                         [][]any
	IDs                          []string
	Sum                          string `json:"ids_sha256"`
}

func answers(t testing.TB) []answer {
	b := testfile.Read(t, filepath.Join(corpus.Dir(t), "containers", "manifest.jsonl"))
	var out []answer
	for line := range bytes.Lines(b) {
		var a answer
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&a); err == nil && a.Type == "query" && a.Op == "sql" {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		t.Fatal("no queries in the manifest")
	}
	return out
}

// TestManifest compares every query of the manifest with the answer that DuckDB gave the original readers.
func TestManifest(t *testing.T) {
	root := filepath.Join(corpus.Dir(t), "containers")
	ran := 0
	for _, a := range answers(t) {
		path, ok := a.Path.(string)
		if !ok || strings.HasSuffix(path, "__TACOCAT__") || strings.HasSuffix(path, ".tacocat") &&
			strings.Contains(a.SQL, `"l1:`) {
			continue // tables that take a reader of containers
		}
		t.Run(path+" "+a.SQL, func(t *testing.T) {
			tables := levels(t, filepath.Join(root, path))
			ran++
			got, err := Run(t.Context(), a.SQL, named.Tables(tables))
			if a.Error != "" {
				if err == nil || (fault.KindOf(err) == fault.NotFound) != strings.Contains(a.Error,
					"not found in FROM") {
					t.Fatalf("%v, want %s", err, a.Error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			a.check(t, got)
		})
	}
	if ran < 100 {
		t.Errorf("only %d queries", ran)
	}
}

func (a *answer) check(t *testing.T, got *tables.Table) {
	rows := values(t, got)
	if a.Rows == nil {
		var ids []string
		for _, r := range rows {
			ids = append(ids, r[got.Index("id")].(string))
		}
		sum := sha256.Sum256([]byte(strings.Join(ids, "\n") + "\n"))
		if a.IDs != nil && !slices.Equal(ids, a.IDs) || a.IDs == nil && hex.EncodeToString(sum[:]) != a.Sum {
			t.Errorf("ids %v, want %v", ids, a.IDs)
		}
		return
	}
	for i, c := range a.Columns.([]any) {
		if got.Columns()[i].Name != c {
			t.Errorf("column %d is %q, want %q", i, got.Columns()[i].Name, c)
		}
	}
	if len(rows) != a.N {
		t.Fatalf("%d rows, want %d", len(rows), a.N)
	}
	for i, want := range a.Rows {
		for k := range want {
			if !same(rows[i][k], want[k]) {
				t.Fatalf("row %d column %d: %v, want %v", i, k, rows[i][k], want[k])
			}
		}
	}
}

// values returns the cells as JSON has them, numbers as json.Number.
func values(t testing.TB, tab *tables.Table) [][]any {
	t.Helper()
	rows := make([][]any, tab.Len())
	for i := range tab.Columns() {
		v, err := tab.At(context.Background(), i)
		if err != nil {
			t.Fatal(err)
		}
		for r := range rows {
			d := json.NewDecoder(bytes.NewReader(v.AppendJSON(nil, r)))
			d.UseNumber()
			var x any
			if err := d.Decode(&x); err != nil {
				t.Fatal(err)
			}
			rows[r] = append(rows[r], x)
		}
	}
	return rows
}

// same compares cells: numbers with a point by value to nine digits, sums of integers, which the manifest has as
// strings, by their digits.
func same(got, want any) bool {
	g, ok := got.(json.Number)
	if !ok {
		return got == want || fmt.Sprint(got) == fmt.Sprint(want)
	}
	switch w := want.(type) {
	case string: // a decimal of DuckDB is a DOUBLE here
		x, err := strconv.ParseFloat(w, 64)
		return string(g) == w || err == nil && math.Abs(x) < math.Inf(1) && same(got, json.Number(w))
	case json.Number:
		if !strings.ContainsAny(string(g)+string(w), ".eE") && g != "-0" {
			return g == w
		}
		x, _ := g.Float64()
		y, _ := w.Float64()
		return math.Abs(x-y) <= 1e-9*max(math.Abs(x), math.Abs(y), 1e-3)
	}
	return false
}
