package suggest

import (
	"slices"
	"testing"
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
		found := jsonTables("x.json", c.value)
		if len(found) != 1 || found[0].path != c.path || len(found[0].rows) != c.rows {
			t.Errorf("%v has the tables %v", c.value, found)
		}
	}
}
