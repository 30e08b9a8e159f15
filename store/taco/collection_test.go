package taco_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestVerifyNotesWhatTheCollectionLacks: each thing that TACO 2.0.0 wants of COLLECTION.json is
// noted where it is not so, and nothing is of the document that the original writer made.
func TestVerifyNotesWhatTheCollectionLacks(t *testing.T) {
	source := filepath.Join("..", "..", "testdata", "coast", "coast_dir")
	raw := testfile.Read(t, filepath.Join(source, "COLLECTION.json"))
	dir := filepath.Join(t.TempDir(), "coast")
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	notes := func(doc map[string]any) []string {
		b, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, filepath.Join(dir, "COLLECTION.json"), b)
		r, err := mustOpen(t, dir).Verify(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r.Notes
	}
	parse := func() (doc map[string]any) {
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	without := notes(parse())
	for _, c := range []struct {
		name  string
		value any // nil: the member is left out
		note  string
	}{
		{"id", "Coast Chips", `id is "Coast Chips": it must be text of a-z`},
		{"taco_version", nil, "taco_version is missing"},
		{"taco_version", "1.0.0", `taco_version is "1.0.0"`},
		{"dataset_version", 1, "dataset_version is 1: it must be text"},
		{"description", "", "description is missing"},
		{"licenses", "CC0", `licenses is "CC0": it must be a list`},
		{"tasks", []any{}, "tasks is missing"},
		{"providers", []any{"x"}, `providers[0] is "x": it must be an object`},
		{"providers", []any{map[string]any{"role": "host"}}, "providers[0] has neither name nor organization"},
		{"split:strategy", "thirds", `split:strategy is "thirds": it must be one of random`},
		{"optical:num_bands", 3, "optical:sensor is missing: optical:num_bands needs it"},
		{"curators", "x", `curators is "x": it must be a list`},
		{"keywords", []any{1}, "keywords is [1]: it must be a list of texts"},
		{"title", strings.Repeat("é", 251), "it must be text of at most 250"},
		{"extent", []any{1}, "extent is [1]: it must be an object"},
		{"extent", map[string]any{"spatial": []any{0, 50, 10, 40}}, "extent.spatial is [0,50,10,40]"},
		{"extent", map[string]any{"spatial": []any{0, 50}}, "extent.spatial"},
		{"extent", map[string]any{"spatial": []any{0, 0, 1, 91}}, "extent.spatial"},
		{"extent", map[string]any{"temporal": []any{"2020-01-01"}}, "extent.temporal"},
		{"taco:field_schema", nil, "has no taco:field_schema"},
		{"taco:field_schema", map[string]any{}, "taco:field_schema has no level0"},
		{"taco:field_schema", map[string]any{"level0": []any{[]any{"nothing", "string"}}},
			`["nothing"], which the table of level0 has not`},
		{"taco:field_schema", map[string]any{"level0": []any{"id"}}, `has "id" for level0, which is not [name, type]`},
		{"taco:field_schema", map[string]any{"level0": []any{}}, "which the table of level0 has"},
	} {
		doc := parse()
		if doc[c.name] = c.value; c.value == nil {
			delete(doc, c.name)
		}
		if got := strings.Join(notes(doc), "\n"); !strings.Contains(got, c.note) {
			t.Errorf("%s = %v: %q, want %q", c.name, c.value, got, c.note)
		}
	}
	doc := parse()
	folders := doc["taco:pit_schema"].(map[string]any)["hierarchy"].(map[string]any)["1"].([]any)
	folders[0].(map[string]any)["id"].([]any)[0] = "other"
	if got := strings.Join(notes(doc), "\n"); !strings.Contains(got, `"other"`) {
		t.Errorf("other ids in taco:pit_schema: %q", got)
	}
	for _, n := range without {
		if strings.Contains(n, "COLLECTION.json") || strings.Contains(n, "taco:") {
			t.Errorf("of the writer's document: %s", n)
		}
	}
}
