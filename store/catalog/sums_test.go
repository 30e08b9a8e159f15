package catalog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestSums promises that the digests in the footer of a catalog give the fingerprint that its columns give, for rasters
// in one folder, in several and of several fields, and for joined columns of every type; that they count only where the
// footer says that chaski wrote the file; and that CheckSums finds a wrong one.
func TestSums(t *testing.T) {
	type entry struct {
		ID    string   `parquet:"id"`
		Small int32    `parquet:"small"`
		Large *int64   `parquet:"large,optional"`
		Wide  uint64   `parquet:"wide"`
		Float *float64 `parquet:"float,optional"`
		Half  float32  `parquet:"half"`
		Yes   bool     `parquet:"yes"`
		Note  *string  `parquet:"note,optional"`
		Day   int32    `parquet:"day,date"`
		At    int64    `parquet:"at,timestamp(millisecond)"`
		List  []int64  `parquet:"list,list"`
		Words []string `parquet:"words,list"`
		Bytes []byte   `parquet:"bytes"`
	}
	dir := folder.Of(t, "in/a/001.tif", "in/a/002.tif", "in/b/003.tif", "bad/bad.tif=no tiff", "m/001.tif", "m/002.tif",
		"m/003.tif")
	note, number, real := "n/x", int64(-7), 0.5
	rows := []entry{
		{ID: "001", Small: 3, Large: &number, Wide: 1, Float: &real, Half: 1.5, Yes: true, Note: &note, Day: 20000,
			At: 1e12, List: []int64{1, 2}, Words: []string{"a", "b"}, Bytes: []byte{1}},
		{ID: "002", Small: -3, Half: 2.5, Day: -1, At: -5},
		{ID: "003", Note: &note, List: []int64{}},
	}
	table := filepath.Join(dir, "t.parquet")
	if err := parquet.WriteFile(table, rows); err != nil {
		t.Fatal(err)
	}
	named := func(names ...string) (fields []catalog.Source) {
		for _, name := range names {
			fields = append(fields, catalog.Source{Field: name, Column: name})
		}
		return fields
	}
	skip := func(string, error) {}
	join := &build.Join{Table: table, On: "id", Left: true}
	pairs := []catalog.Source{{Field: "image", Pattern: "in/{f}/{id}.tif"}, {Field: "mask", Pattern: "m/{id}.tif"}}
	for name, c := range map[string]struct {
		o      build.Options
		paths  []string
		fields []catalog.Source
	}{
		"one folder":               {build.Options{}, []string{"in/a"}, nil},
		"another base":             {build.Options{Base: "/"}, []string{"in/a"}, nil},
		"several folders":          {build.Options{Skipped: skip}, []string{"in", "m"}, nil},
		"the last folder left out": {build.Options{Skipped: skip}, []string{"in/a", "bad"}, nil},
		"pairs":                    {build.Options{Fields: pairs, DropIncomplete: true}, []string{"."}, nil},
		"one of the pairs":         {build.Options{Fields: pairs, DropIncomplete: true}, []string{"."}, named("mask")},
		"a table": {build.Options{Skipped: skip, Join: join}, []string{"in"}, append(named("id", "small", "large",
			"wide", "float", "half", "yes", "note", "day", "at", "list", "words", "size", "height", "bands"),
			catalog.Source{Field: "image"})},
		"paths as texts": {build.Options{}, []string{"in/a"}, []catalog.Source{
			{Field: "uri", Column: "uri", Kind: catalog.Text}, {Field: "image"}}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "c.parquet")
			paths := make([]string, len(c.paths))
			for i, path := range c.paths {
				paths[i] = filepath.Join(dir, path)
			}
			folder.Index(t, file, c.o, paths...)
			written, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			print := func(old, new string) string {
				t.Helper()
				if !bytes.Contains(written, []byte(old)) {
					t.Fatalf("no %q in the catalog", old)
				}
				changed := bytes.ReplaceAll(written, []byte(old), []byte(new))
				testfile.Write(t, file, changed)
				return folder.Open(t, file, catalog.Options{}, c.fields...).Fingerprint()
			}
			want := print(layout.SumsKey, strings.ToUpper(layout.SumsKey))
			if got := print(layout.Creator+" version", layout.Creator+" version"); got != want {
				t.Errorf("%s by the footer, %s by the columns", got, want)
			}
			if err := folder.Open(t, file, catalog.Options{}, c.fields...).CheckSums(t.Context()); err != nil {
				t.Error(err)
			}
			if name == "the last folder left out" { // the writer took another folder for the one that all share
				return
			}
			if got := print(layout.Creator+" version", strings.ToUpper(layout.Creator)+" version"); got != want {
				t.Errorf("%s of another writer, %s by the columns", got, want)
			}
			wrong := regexp.MustCompile(`"values":"[0-9a-f]{32}`).ReplaceAll(written,
				[]byte(`"values":"`+strings.Repeat("0", 32)))
			testfile.Write(t, file, wrong)
			tab := folder.Open(t, file, catalog.Options{}, c.fields...)
			if tab.Fingerprint() == want {
				t.Error("the digests are not used")
			}
			if err := tab.CheckSums(t.Context()); fault.KindOf(err) != fault.Corrupt {
				t.Errorf("wrong digests: %v", err)
			}
		})
	}
}
