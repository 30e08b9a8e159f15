package duckdb

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// The queries of the corpus give here what package query gives, column names included: whichever of the
// two runs a query, the answer is one.
func TestSameAsPureGo(t *testing.T) {
	root := filepath.Join(corpus.Dir(t), "containers")
	manifest, err := os.ReadFile(filepath.Join(root, "manifest.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	files := &source.Files{}
	defer files.Close()
	compared := 0
	for line := range bytes.Lines(manifest) {
		var q struct {
			Type, Op, SQL, Error string
			Path                 any
		}
		if err := json.Unmarshal(line, &q); err != nil {
			t.Fatal(err)
		}
		path, ok := q.Path.(string)
		// NaN, see package query
		if q.Type != "query" || q.Op != "sql" || q.Error != "" || !ok || strings.Contains(q.SQL, `f64" > 0`) {
			continue
		}
		d, err := taco.Open(t.Context(), files, []string{filepath.Join(root, path)}, taco.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := d.SQL(t.Context(), q.SQL)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Run(t.Context(), q.SQL, d.SQLTables(), d.SQLTable)
		if err != nil {
			t.Errorf("%s %s: %v", path, q.SQL, err)
			continue
		}
		zone := strings.NewReplacer("+00:00", "") // instants have none here, see typeInfo
		a, b := strings.Split(rows(t, got), "\n"), strings.Split(zone.Replace(rows(t, want)), "\n")
		if !strings.Contains(q.SQL, "ORDER BY") && strings.Contains(q.SQL, "JOIN") {
			slices.Sort(a)
			slices.Sort(b)
		}
		if !strings.Contains(q.SQL, "AVG") && !slices.Equal(a, b) {
			t.Errorf("%s %s:\n%.200s\n%.200s", path, q.SQL, a, b)
		}
		compared++
		d.Close()
	}
	if compared < 100 {
		t.Errorf("only %d queries", compared)
	}
}
