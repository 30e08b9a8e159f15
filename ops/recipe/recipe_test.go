package recipe

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

const head = `collection: {id: c, dataset_version: "1", description: d, licenses: [CC0-1.0], providers: [{name: Ana}],
  tasks: [other]}
source: s
`

// TestParseRefuses: what is wrong is named with its key, value and rule.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "it is empty",
		"[]":                                `it is []: it must be an object`,
		head + "sorce: x":                   `no member "sorce"; there are bad_samples, bbox`,
		head + "fields:\n- {name: a, x: 1}": `no member "fields[0].x"`,
		head + "source: y":                  `line 4: mapping key "source" already defined at line 3`,
		head + "where: [a]":                 "where is [\"a\"]: it must be a string",
		head + "windows: {kind: grid}":      "windows.size is 0: both sides must be",
		head + "windows: {size: 4}":         "windows.kind is whole",
		head + "windows: {kind: weighted, size: 4}":           "weighted_window needs weights",
		head + "windows: {kind: weighted, weights: w}":        "windows.size is 0",
		head + "windows: {kind: random, size: 4, weights: w}": `weights is a member of kind "weighted_window"`,
		head + "windows: {kind: grid, size: [1, 2, 3]}":       "windows.size has several sides",
		head + "windows: {kind: grid, size: many}":            `windows.size is "many": it must be the side`,
		head + "windows: {kind: grid, size: 16.7}":            `windows.size is 16.7: it must be the side`,
		head + "windows: {kind: grid, size: [16, 1.5]}":       `windows.size is [16,1.5]: it must be the side`,
		head + "windows: {kind: random, seed: 1.5}":           `windows.seed is 1.5: it must be a whole number`,
		head + "windows: &w {kind: grid, size: .inf}":         `windows.size is "inf": it must be the side`,
		head + "windows: {kind: ground, per_epoch: 0.5}":      `windows.per_epoch is 0.5: it must be a whole number`,
		head + "windows: {kind: tiles}":                       `windows.kind is "tiles"`,
		head + "windows: {kind: grid, size: 0x7fffffff}":      "both sides must be from 1 to 65536",
		head + "fields: [{name: a}, {name: a}]":               `two fields are called "a"`,
		head + "fields: [{}, {}]":                             "field 0 has no name",
		head + "fields: [{dtype: float64}]":                   `dtype is "float64"`,
		head + "fields: [{nodata: NaN}]":                      `fields[0].nodata is "NaN": it must be a number`,
		head + "fields: [{codec: {format: zip}}]":             `codec.format is "zip"`,
		head + "fields: [{codec: {graph: best}}]":             "codec.graph",
		head + "fields: [{codec: {format: rumi, graph: x}}]":  "graph",
		head + "fields: [{codec: {level: 23}}]":               "level is 23",
		head + "fields: [{codec: {tile: 17}}]":                "tile is 17",
		head + "split: {by: hash}":                            "split.shares is missing",
		head + "split: {by: luck, shares: {a: 1}}":            `split.by is "luck"`,
		head + "split: {by: place, shares: {a: 1}}":           "split.cell is 0",
		head + "split: {by: hash, cell: 1, shares: {a: 1}}":   "split.cell is 1",
		head + "split: {by: column, shares: {a: 1}}":          "split.column",
		head + "split: {by: hash, shares: {a: -1}}":           "split",
		head + "quality: {max_nodata: 20}":                    "quality.max_nodata is 20",
		head + "quality: {max_nodata: .nan}":                  `quality.max_nodata is "nan"`,
		head + "quality: {fields: [b]}":                       `there is no field "b"`,
		head + "quality: {pairs: keep}":                       `quality.pairs is "keep"`,
		head + "bad_samples: fill":                            `bad_samples is "fill"`,
		head + "---\nsource: b":                               "a second document",
		strings.ReplaceAll(head, "source: s\n", ""):           "source is missing",
		"source: s": "collection is missing",
		strings.ReplaceAll(head, "id: c", "id: C"):          `id is "C"`,
		"a: &a [x, x]\nb: &b [*a, *a, *a]":                  `no member "a"`,
		head + "bbox: [1, 2, 3]":                            "bbox has 3 numbers",
		head + "bbox: 1":                                    "bbox is 1: it must be a list",
		head + strings.Repeat("#", 1<<20):                   "bytes, at most 1048576",
		head + "split: {by: hash, shares: {\"\": 1, a: 1}}": `the name ""`,
		strings.ReplaceAll(head, "id: c", "x: &x "+strings.Repeat("y", 1<<16)+", z: ["+strings.Repeat("*x, ", 1000)+
			"*x], id: c"): "more than 1048576 bytes",
		strings.ReplaceAll(head, "id: c", "x: &x {y: *x}, id: c"):        "contains itself",
		head + "statistics: perhaps":                                     `statistics is "perhaps"`,
		head + "fields: [{column: a, pattern: b}]":                       "both column and pattern are given",
		head + "fields: [{name: a, band_names: []}]\nmissing: sometimes": "missing",
	} {
		r, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") ||
			!strings.HasPrefix(err.Error(), "recipe: ") {
			t.Errorf("%.80q: %v, %v; want %q", strings.TrimPrefix(text, head), r, err, want)
		}
	}
}

// TestLabelsRefused: what is wrong with labels is named, with the value and the rule.
func TestLabelsRefused(t *testing.T) {
	for _, c := range [][2]string{
		{"{classes: [1]}", "quality.labels.field is missing"},
		{"{field: a, classes: [1]}", `there is no field "a"`},
		{"{field: image}", "quality.labels.classes is missing"},
		{"{field: image, classes: [1.5]}", "quality.labels.classes[0] is 1.5"},
		{"{field: image, classes: [.nan]}", `quality.labels.classes[0] is "nan"`},
		{"{field: image, classes: [1], min_share: 5}", "quality.labels.min_share is 5"},
		{"{field: image, classes: [1], min_share: .nan}", `quality.labels.min_share is "nan"`},
		{"{field: image, classes: [1]}}\nfields: [{dtype: float32}]\nsplit: {", "has dtype float32"},
		{"{field: b, classes: [1]}}\nfields: [{name: a}, {name: b, vector: {path: x, kind: instances}}]\nsplit: {",
			"is of instances"},
	} {
		_, err := Parse([]byte(head + "quality: {labels: " + c[0] + "}\n"))
		if err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %q", c[0], err, c[1])
		}
	}
}

// TestCollectionIsJSON: dates and keys of the collection are strings as they are written.
func TestCollectionIsJSON(t *testing.T) {
	r, err := Parse([]byte(strings.Replace(head, `dataset_version: "1"`,
		"dataset_version: 2024-01-01, when: &w 2024-02-30, again: [*w], 5: {1: 2.5, true: yes, ~: null}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"dataset_version": "2024-01-01", "when": "2024-02-30",
		"again": []any{"2024-02-30"}, "5": map[string]any{"1": 2.5, "true": "yes", "~": nil}} {
		var got any
		if err := json.Unmarshal(r.Collection[key], &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, want %#v", key, got, want)
		}
	}
	if _, err := r.collection(); err != nil {
		t.Error(err)
	}
}

// TestParseJSON: a recipe of JSON is the one of YAML.
func TestParseJSON(t *testing.T) {
	a, err := Parse([]byte(head + "windows: {kind: grid, size: [3, 4], stride: 2}\n" +
		"split: {by: hash, shares: {a: 0.5, b: 2}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Parse([]byte(`{"source": "s", "windows": {"kind": "grid", "size": [3, 4], "stride": 2},
	"split": {"by": "hash", "shares": {"b": 2, "a": 0.5}}, "collection": {"id": "c", "dataset_version": "1",
	"description": "d", "licenses": ["CC0-1.0"], "providers": [{"name": "Ana"}], "tasks": ["other"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// FuzzRecipe: any text is refused on one line, or is a recipe that the checks of the loader and of the container
// accept.
func FuzzRecipe(f *testing.F) {
	f.Add([]byte(head))
	f.Add([]byte(head + "windows: {kind: random, size: 8, per_file: 3, seed: 7}\n" +
		"fields: [{name: a, bands: [1]}, {name: b}]"))
	f.Add([]byte(head + "split: {by: place, cell: 0.5, shares: {a: 1, b: 1}}\n" +
		"quality: {max_nodata: 0.5}\nbbox: [1,2,3,4]"))
	f.Add([]byte(head + "quality: {labels: {field: image, classes: [3, -7], min_share: 0.01}}"))
	f.Add([]byte("a: &a [*a]\n<<: *a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q", err)
			}
			return
		}
		if s, err := r.spec(""); err != nil || s.Validate() != nil || len(s.Fields) != len(r.Fields) {
			t.Errorf("%+v: %v", s, err)
		}
		if _, err := r.collection(); err != nil {
			t.Error(err)
		}
	})
}
