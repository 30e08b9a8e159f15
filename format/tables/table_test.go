package tables

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

type memory = source.Memory

// level opens a level's table of a container of the corpus, at its place in the ZIP.
func level(t testing.TB, path, name string, o Options) *Table {
	t.Helper()
	b := testfile.Read(t, path)
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		if f.Name == name {
			off, err := f.DataOffset()
			if err != nil {
				t.Fatal(err)
			}
			tab, err := Read(t.Context(), memory(b), off, int64(f.CompressedSize64), o)
			if err != nil {
				t.Fatal(err)
			}
			return tab
		}
	}
	t.Fatalf("%s has no %s", path, name)
	return nil
}

// rows are the cases of the manifest that have the rows their writer was given.
func rows(t *testing.T, dir string) map[string][]map[string]any {
	b := testfile.Read(t, filepath.Join(dir, "manifest.jsonl"))
	out := map[string][]map[string]any{}
	for line := range bytes.Lines(b) {
		var c struct {
			Type string
			Path any
			Rows []map[string]any `json:"rows_expected"`
		}
		if err := decode(line, &c); err != nil {
			t.Fatal(err)
		}
		if path, ok := c.Path.(string); ok && c.Type == "case" && c.Rows != nil {
			out[path] = c.Rows
		}
	}
	if len(out) == 0 {
		t.Fatal("no case with rows")
	}
	return out
}

// decode keeps numbers as they are written.
func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}

// same compares values of decode: numbers by their digits, or as floats if one is written as a float.
func same(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		if !ok || x == y || !strings.ContainsAny(string(x)+string(y), ".eE") {
			return ok && x == y
		}
		f, err1 := x.Float64()
		g, err2 := y.Float64()
		return err1 == nil && err2 == nil && f == g
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			if !same(x[k], y[k]) {
				return false
			}
		}
		return true
	}
	return a == b
}

// TestTypesOfTheCorpus promises that columns of all types of the original writers have the values that were written,
// whether the object is read at once or a column at a time.
func TestTypesOfTheCorpus(t *testing.T) {
	dir := filepath.Join(corpus.Dir(t), "containers")
	for path, want := range rows(t, dir) {
		for _, whole := range []int64{0, 1} {
			tab := level(t, filepath.Join(dir, path), "METADATA/level0.parquet", Options{Whole: whole})
			if tab.Len() < len(want) { // the manifest holds the first rows
				t.Fatalf("%s: %d rows, want at least %d", path, tab.Len(), len(want))
			}
			for name := range want[0] {
				v, err := tab.Column(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				for i := range want {
					want[i][name] = as(v.Type(), want[i][name])
					if got := v.AppendJSON(nil, i); !equalJSON(t, got, want[i][name]) {
						t.Errorf("%s row %d %s, %s: got %s, want %v", path, i, name, v.Type(), got, want[i][name])
						break
					}
				}
			}
		}
	}
}

// as converts a value of the manifest to the form that a column of its type has: the manifest has numbers before they
// became float32, decimals as text, and the pairs of a map as lists.
func as(t Type, want any) any {
	switch x := want.(type) {
	case json.Number:
		if f, err := x.Float64(); err == nil && t.Kind == Float64 && t.Bits == 32 {
			return json.Number(strconv.FormatFloat(float64(float32(f)), 'e', -1, 64))
		}
	case string:
		if t.Kind == Decimal {
			return json.Number(x)
		}
	case []any:
		if t.Stored().Store == Map {
			out := map[string]any{}
			for _, pair := range x {
				p := pair.([]any)
				out[p[0].(string)] = as(t.Elem.Fields[1].Type, p[1])
			}
			return out
		}
		if t.Kind == List {
			out := make([]any, len(x))
			for i := range x {
				out[i] = as(*t.Elem, x[i])
			}
			return out
		}
	}
	return want
}

func equalJSON(t *testing.T, got []byte, want any) bool {
	t.Helper()
	var v any
	if err := decode(got, &v); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	return same(v, want)
}
