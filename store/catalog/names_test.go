package catalog_test

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// values returns the values of a column as text.
func values(t *testing.T, table *catalog.Table, name string) (out []string) {
	t.Helper()
	kind, err := scanned(t.Context(), table, name, func(_ int64, v catalog.Value) error {
		out = append(out, string(v.Text))
		return nil
	})
	if kind == catalog.Int {
		out = nil
		_, err = scanned(t.Context(), table, name, func(_ int64, v catalog.Value) error {
			out = append(out, fmt.Sprint(v.Int))
			return nil
		})
	}
	if err != nil {
		t.Fatalf("column %q: %v", name, err)
	}
	return out
}

// TestNamesOfPatterns: the names of patterns are columns, in directories and in catalogs; fields that lack a name have
// one file for all its values; a number of a name is one.
func TestNamesOfPatterns(t *testing.T) {
	var files []string
	type sample struct{ split, scene, id string }
	var samples []sample
	for _, split := range []string{"test", "train"} {
		for _, scene := range []string{"a_1", "b"} {
			scene = split + scene
			files = append(files, "dem/"+scene+".tif")
			for _, id := range []string{"2", "10"} {
				samples = append(samples, sample{split, scene, id})
				base := path.Join(split, scene, "tiles")
				files = append(files, base+"/vv/"+scene+"_"+id+"_vv.tif", base+"/vh/deep/"+scene+"_"+id+"_x.tif",
					base+"/vh/"+scene+"_"+id+".tif")
			}
		}
	}
	dir := folder.Of(t, files...)
	fields := []catalog.Source{
		{Field: "dem", Pattern: "dem/{scene}.tif"},
		{Field: "vv", Pattern: "{split}/{scene}/tiles/vv/{scene}_{id}_vv.tif"},
		{Field: "vh", Pattern: "{split}/*/tiles/**/{scene}_{id}_x.tif"},
		{Field: "id", Column: "id"},
		{Field: "split", Column: "split", Kind: catalog.Text},
	}
	slices.SortFunc(samples, func(a, b sample) int {
		return strings.Compare(a.scene+"_"+a.id+"_", b.scene+"_"+b.id+"_")
	})
	index := filepath.Join(dir, "index.parquet")
	folder.Index(t, index, build.Options{}, dir)
	for _, src := range []string{dir, index} {
		table := folder.Open(t, src, catalog.Options{Columns: []string{"scene"}}, fields...)
		if table.Len() != int64(len(samples)) {
			t.Fatalf("%s: %d samples, want %d", src, table.Len(), len(samples))
		}
		scenes, ids := values(t, table, "scene"), values(t, table, "id")
		names, paths := values(t, table, "name"), values(t, table, "path")
		for row, want := range samples {
			vv := fmt.Sprintf("%s/%s/tiles/vv/%[2]s_%[3]s_vv", want.split, want.scene, want.id)
			if scenes[row] != want.scene || ids[row] != want.id || names[row] != path.Base(vv) ||
				paths[row] != vv+".tif" {
				t.Errorf("row %d: scene %q, id %q, name %q, path %q, want %v", row, scenes[row], ids[row], names[row],
					paths[row], want)
			}
			for i, file := range []string{"dem/" + want.scene, vv,
				fmt.Sprintf("%s/%s/tiles/vh/deep/%[2]s_%[3]s_x", want.split, want.scene, want.id)} {
				v, err := table.Value(t.Context(), i, int64(row))
				if err != nil || !strings.HasSuffix(string(v.Text), file+".tif") {
					t.Errorf("row %d field %d: %q, %v, want %s", row, i, v.Text, err, file)
				}
			}
			id, err := table.Value(t.Context(), 3, int64(row))
			split, _ := table.Value(t.Context(), 4, int64(row))
			if err != nil || table.Kind(3) != catalog.Int || fmt.Sprint(id.Int) != want.id ||
				string(split.Text) != want.split {
				t.Errorf("row %d: id %v of kind %v, split %q, %v", row, id.Int, table.Kind(3), split.Text, err)
			}
		}
		var keys []string
		err := table.ScanKeys(t.Context(), func(_ int64, key string) error {
			keys = append(keys, key)
			return nil
		})
		if err != nil || keys[0] != strings.Join([]string{samples[0].split, samples[0].scene, samples[0].id}, "/") {
			t.Errorf("keys %q, %v", keys, err)
		}
	}
}

// TestNamesThatDoNotAgree: what has no partner, or several, is an error with the way out.
func TestNamesThatDoNotAgree(t *testing.T) {
	dir := folder.Of(t, "s1/a.tif", "s1/b.tif", "s2/a.tif", "label/s1.tif", "label/s2.tif", "label/s3.tif")
	field := func(name, pattern string) catalog.Source { return catalog.Source{Field: name, Pattern: pattern} }
	for _, c := range []struct {
		fields []catalog.Source
		want   string
	}{
		{[]catalog.Source{field("image", "s{n}/{id}.tif"), field("label", "label/s{n}.tif")},
			`no file s3/{id}.tif for the id "3"; 1 files are missing`},
		{[]catalog.Source{field("image", "*/{id}.tif")},
			`two files of the pattern "*/{id}.tif" have the id "a": a name`},
		{[]catalog.Source{field("image", "{n}/a.tif"), field("label", "label/{x}.tif")},
			"no field of files has all of the names {n}, {x}"},
		{[]catalog.Source{field("image", "*/a.tif")}, "has no name such as {id}"},
		{[]catalog.Source{field("image", "{a}/{b}/{c}.tif")}, "names and * stand for text without slashes here"},
		{[]catalog.Source{field("image", "s{n}/{id}.tif"), field("label", "s1/{id}.tif")}, `for the id "2/`},
	} {
		_, err := catalog.Open(t.Context(), dir, c.fields, catalog.Options{})
		if c.want == `for the id "2/` { // a of s2 has the file of s1
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.KindOf(err) == 0 {
			t.Errorf("%v: %v, want %s", c.fields, err, c.want)
		}
	}
	dropped := folder.Open(t, dir, catalog.Options{DropIncomplete: true}, field("image", "s{n}/{id}.tif"),
		field("label", "label/s{n}.tif"))
	if n := dropped.Remarks.Dropped; n != 1 || dropped.Len() != 3 {
		t.Errorf("%d dropped, %d left", n, dropped.Len())
	}
	if _, err := scanned(t.Context(), dropped, "other", nil); !errors.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
}

// TestNamesParser: names of bands are a JSON array with one for each.
func TestNamesParser(t *testing.T) {
	var parser catalog.NamesParser
	for range 2 { // the last ones are kept
		got, err := parser.Parse(3, []byte(`["B4","B8"]`), 2)
		if err != nil || !slices.Equal(got, []string{"B4", "B8"}) {
			t.Errorf("%q, %v", got, err)
		}
		for _, text := range []string{`["B4"]`, `["B4","B8","B8"]`, `"B4"`, `["B4",`, `[4,8]`} {
			if got, err := parser.Parse(3, []byte(text), 2); fault.KindOf(err) != fault.Corrupt {
				t.Errorf("%s: %q, %v", text, got, err)
			}
		}
	}
}
