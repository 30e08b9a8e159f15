package suggest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

func TestSplitWords(t *testing.T) {
	for _, c := range []struct{ name, with, word string }{
		{"train/train-org-img", "{S}/{S}-org-img", "train"},
		{"train/trainimg", "{S}/{S}img", "train"},
		{"a/instances_val2017.json", "a/instances_{S}2017.json", "val"},
		{"TrainData/img", "{S}Data/img", "Train"},
		{"trainer/restrain", "trainer/restrain", ""},
		{"valley/images", "valley/images", ""},
	} {
		if with, word := marked(c.name); with != c.with || word != c.word {
			t.Errorf("marked(%q) is %q, %q, not %q, %q", c.name, with, word, c.with, c.word)
		}
	}
	found := splits([]string{"train.csv", "val.csv", "test/a", "labels.csv"})
	if len(found) != 1 || !slices.Equal(found["{S}.csv"], []string{"train", "val"}) {
		t.Errorf("splits are %v", found)
	}
}

func TestAxes(t *testing.T) {
	for _, c := range []struct {
		shape []int
		dims  string
	}{
		{[]int{64, 64}, "y x"}, {[]int{6, 64, 64}, "b y x"}, {[]int{64, 64, 13}, "y x b"},
		{[]int{5, 10, 64, 64}, "t b y x"}, {[]int{5, 64, 64, 10}, "t y x b"}, {[]int{64, 64, 7, 30}, "y x b t"},
		{[]int{1, 2, 3, 4, 5}, ""}, {[]int{9}, ""},
	} {
		var h head
		if h.shape(c.shape); h.dims != c.dims {
			t.Errorf("%v has the axes %q, not %q", c.shape, h.dims, c.dims)
		}
	}
}

func TestTemplates(t *testing.T) {
	table := &table{cols: []string{"place", "n"}, rows: [][]string{{"dam", "1"}, {"dam", "2"}, {"zoo", "2"}},
		of: []string{"train", "train", "val"}}
	paths := []string{"train/dam/dam_1.tif", "train/dam/dam_2.tif", "val/zoo/zoo_2.tif", "val/zoo/zoo_20.tif"}
	all := map[string]bool{}
	for _, p := range paths {
		all[p] = true
	}
	found := table.templates(paths, all)
	if files := found["{S}/{place}/{place}_{n}.tif"]; len(found) != 1 || !slices.Equal(files, paths[:3]) {
		t.Errorf("templates are %v", found)
	}
}

func TestTablesOfJSON(t *testing.T) {
	for _, c := range []struct {
		value any
		path  string
		rows  int
	}{
		{[]any{map[string]any{"a": 1.}}, "x.json", 1},
		{map[string]any{"images": []any{map[string]any{"a": 1.}, nil}, "info": "x"}, "x.json::images", 2},
		{map[string]any{"dam": []any{"a", "b"}, "zoo": []any{"c"}}, "x.json::{class}", 3},
		{map[string]any{"a": map[string]any{"y": 1.}, "b": map[string]any{"y": 2.}}, "x.json", 2},
	} {
		found := new(prober).jsonTables("x.json", c.value)
		if len(found) != 1 || found[0].path != c.path || len(found[0].rows) != c.rows {
			t.Errorf("%v has the tables %v", c.value, found)
		}
	}
}

// TestBeginningOfJSON: a beginning that is long enough is what encoding/json reads; a shorter one has the first
// elements.
func TestBeginningOfJSON(t *testing.T) {
	for _, text := range []string{`1.5`, `"a"`, `null`, `[]`, `{}`, `[1, [true, {"a": [null, "b"]}], {}]`,
		`{"a": {"b": [{}, [], "c"]}, "d": 1e3}`, `[1, `, `{"a" 1}`, `{"a": ]}`, ``} {
		var want any
		wantErr := json.Unmarshal([]byte(text), &want)
		begun := beginning{Decoder: json.NewDecoder(strings.NewReader(text)), quota: 100}
		got, err := begun.value(0)
		if (err != nil) != (wantErr != nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v, %v, not %v, %v", text, got, err, want, wantErr)
		}
	}
	begun := beginning{Decoder: json.NewDecoder(strings.NewReader(`{"a": [1, 2, 3], "b": 4}`)), quota: 4}
	got, err := begun.value(0)
	if want := any(map[string]any{"a": []any{1., 2.}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the first values are %v, %v, not %v", got, err, want)
	}
	deep := beginning{Decoder: json.NewDecoder(strings.NewReader(strings.Repeat("[", 2*maxDepth))), quota: 100}
	if _, err := deep.value(0); fault.KindOf(err) != fault.Limit {
		t.Errorf("lists that nest too deep: %v", err)
	}
}

// TestSparseTables: objects that have no names in common take no more cells than are kept, however many there are.
func TestSparseTables(t *testing.T) {
	var p prober
	objects := make([]any, 20_000)
	for i := range objects {
		objects[i] = map[string]any{strconv.Itoa(i): 1.}
	}
	for range 5 {
		for _, found := range p.jsonTables("x.json", objects) {
			if cells := len(found.rows) * len(found.cols); cells > maxValuesKept || len(found.cols) > maxColumns {
				t.Errorf("%d rows of %d columns", len(found.rows), len(found.cols))
			}
		}
	}
	if p.values > maxValuesKept || p.room(1) < 0 {
		t.Errorf("%d values are kept, over %d", p.values, maxValuesKept)
	}
}
