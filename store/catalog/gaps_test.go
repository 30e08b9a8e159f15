package catalog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/catalog/tableinfo"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/outage"
)

// TestIDsWithoutRasters: a sample is called by its first raster, or by the number of its row where it has none.
func TestIDsWithoutRasters(t *testing.T) {
	dir := folder.Of(t, "0.tif", "1.tif", "t.csv=n,uri,mask\n5,0.tif,\n6,,1.tif\n7,1.tif,0.tif\n", "n.csv=n\n5\n6\n")
	n, uri, mask := catalog.Source{Field: "n"}, catalog.Source{Field: "x", Column: "uri"}, catalog.Source{Field: "mask"}
	for name, c := range map[string]struct {
		src    string
		fields []catalog.Source
		want   string
	}{
		"numbers":      {"n.csv", []catalog.Source{n}, "[row 0 row 1]"},
		"a raster":     {"t.csv", []catalog.Source{n, uri}, "[0.tif row 1 1.tif]"},
		"two":          {"t.csv", []catalog.Source{n, uri, mask}, "[0.tif 1.tif 1.tif]"},
		"another":      {"t.csv", []catalog.Source{mask, n}, "[row 0 1.tif 0.tif]"},
		"numbers only": {"t.csv", []catalog.Source{n}, "[row 0 row 1 row 2]"},
	} {
		table := folder.Open(t, filepath.Join(dir, c.src), catalog.Options{}, c.fields...)
		var scanned []string
		if err := table.ScanIDs(t.Context(), func(_ int64, id string) error {
			scanned = append(scanned, id)
			return nil
		}); err != nil {
			t.Error(name, err)
		}
		if got := folder.IDs(t, table); fmt.Sprint(got) != c.want || fmt.Sprint(scanned) != c.want {
			t.Errorf("%s: %q, scanned %q, want %s", name, got, scanned, c.want)
		}
	}
	numbers := folder.Open(t, filepath.Join(dir, "n.csv"), catalog.Options{}, n)
	visits := 0
	if err := numbers.ScanIDs(t.Context(), func(int64, string) error {
		visits++
		return outage.Err
	}); !errors.Is(err, outage.Err) || visits != 1 {
		t.Errorf("%d visits of numbers, %v", visits, err)
	}
	if !panics(func() { _, _ = numbers.ID(t.Context(), 2) }) {
		t.Error("a row that is not there has a name")
	}
	table := folder.Open(t, filepath.Join(dir, "t.csv"), catalog.Options{}, uri, n)
	if a, err := table.Asset(t.Context(), 0, 1); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a null: %+v, %v", a, err)
	}
	if got := fmt.Sprint(keysOf(t, table)); got != "[0.tif row 1 1.tif]" {
		t.Errorf("keys %s", got)
	}
	if _, err := scanAt(t.Context(), table, "none", nil, nil); fault.KindOf(err) != fault.NotFound {
		t.Errorf("values of no column: %v", err)
	}
	folders := ""
	_, err := scanAt(t.Context(), folder.Open(t, dir, catalog.Options{}), "name", []int32{1, -1, 0},
		func(row int64, v catalog.Value) error {
			folders += fmt.Sprintf("%d %s %v, ", row, v.Text, v.Null)
			return nil
		})
	if want := "0 1 false, 1  true, 2 0 false, "; err != nil || folders != want {
		t.Errorf("names of a listing: %q, %v", folders, err)
	}
	stop := fmt.Errorf("stop")
	for name, scan := range map[string]func() error{
		"ids": func() error {
			return table.ScanIDs(t.Context(), func(int64, string) error { return stop })
		},
		"keys": func() error {
			return table.ScanKeys(t.Context(), func(int64, string) error { return stop })
		},
		"some values": func() error {
			_, err := scanAt(t.Context(), table, "n", []int32{1}, func(int64, catalog.Value) error { return stop })
			return err
		},
	} {
		if err := scan(); err == nil || !strings.Contains(err.Error(), "stop") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPathsByColumns: a pattern of a table names its columns; a file that may lack is null, and a field of paths has
// text.
func TestPathsByColumns(t *testing.T) {
	dir := folder.Of(t, "i/0.tif", "i/1.tif", "s/0.geojson={}", "t.csv=uri,id\ni/0.tif,0\ni/1.tif,1\n,\n")
	src := filepath.Join(dir, "t.csv")
	files := &countedFiles{}
	o := catalog.Options{Opener: &openers.Mux{Files: files}}
	table := folder.Open(t, src, o, catalog.Source{Field: "image", Column: "uri"},
		catalog.Source{Field: "same", Pattern: "i/{id}.tif"},
		catalog.Source{Field: "shapes", Pattern: "s/{id}.geojson", Beside: true, Optional: true},
		catalog.Source{Field: "path", Column: "uri", Kind: catalog.Text},
		catalog.Source{Field: "all", Pattern: "s/{id}.geojson", Beside: true})
	if got := valuesOf(t, table, 4); !slices.Equal(got, []string{filepath.Join(dir, "s", "0.geojson"),
		filepath.Join(dir, "s", "1.geojson"), "null"}) {
		t.Errorf("shapes that each sample has: %q", got)
	}
	want := []string{filepath.Join(dir, "s", "0.geojson"), "null", "null"}
	if got := valuesOf(t, table, 2); !slices.Equal(got, want) {
		t.Errorf("shapes %q, want %q", got, want)
	}
	if n := files.open.Load(); n != 0 {
		t.Errorf("%d files are open", n)
	}
	if got := fmt.Sprint(table.Kind(1), table.Kind(2), table.Kind(3)); got != fmt.Sprint(catalog.Raster, catalog.Text,
		catalog.Text) {
		t.Errorf("kinds %s", got)
	}
	for row := range int64(2) {
		a, err := table.Asset(t.Context(), 0, row)
		b, other := table.Asset(t.Context(), 1, row)
		if err != nil || other != nil || a.URI != b.URI || a.URI != filepath.Join(dir, "i", fmt.Sprint(row, ".tif")) {
			t.Errorf("row %d: %s, %s: %v, %v", row, a.URI, b.URI, err, other)
		}
	}
	for says, s := range map[string]catalog.Source{"no *": {Field: "x", Pattern: "i/*{id}.tif"},
		"must have names of columns": {Field: "x", Pattern: "i/0.tif"}, "none": {Field: "x", Pattern: "i/{none}.tif"}} {
		if _, err := catalog.Open(t.Context(), src, []catalog.Source{s}, catalog.Options{}); err == nil ||
			fault.KindOf(err) == 0 || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// TestDataOfListings: names of patterns, folders and paths are columns of samples, in their order, and so are the
// columns of a catalog whose rows pairs leave out.
func TestDataOfListings(t *testing.T) {
	dir := folder.Of(t, "b/i_2.tif", "b/i_1.tif", "a/i_3.tif", "a/m_3.tif", "b/m_1.tif", "b/m_2.tif", "c/i_9.tif")
	all := filepath.Join(dir, "all.parquet")
	folder.Index(t, all, build.Options{}, dir)
	fields := []catalog.Source{{Field: "i", Pattern: "./{site}/i_{n}.tif"}, {Field: "m", Pattern: "{site}/m_{n}.tif"}}
	for _, src := range []string{dir, all} {
		table, err := catalog.Open(t.Context(), src, fields, catalog.Options{DropIncomplete: true})
		if err != nil {
			t.Fatal(err)
		}
		data, err := table.Data(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"site": "[a b b]", "n": "[3 1 2]"} {
			v, err := data.Column(t.Context(), name)
			if err != nil {
				t.Error(src, name, err)
				continue
			}
			var got []string
			for row := range v.Len() {
				got = append(got, strings.Trim(string(v.AppendJSON(nil, row)), `"`))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%s: %s is %q, want %s", src, name, got, want)
			}
		}
		if r := table.Remarks; r.Dropped != 1 || !strings.Contains(r.Lacking, "9") {
			t.Errorf("%s: %d dropped, such as %s", src, r.Dropped, r.Lacking)
		}
		if got := fmt.Sprint(keysOf(t, table)); got != "[a/3 b/1 b/2]" {
			t.Errorf("%s: keys %s", src, got)
		}
		if table.Listed() != (src == dir) || unitOf(table, "site") != 0 {
			t.Errorf("%s: listed is %v", src, table.Listed())
		}
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestImagesOfATable: columns of images are found in a Parquet file, and named as such.
func TestImagesOfATable(t *testing.T) {
	type line struct {
		Name string    `parquet:"name"`
		When time.Time `parquet:"when,timestamp"`
		Tags []int64   `parquet:"tags,list"`
	}
	dir := folder.Of(t, "i.parquet="+string(imageTable(t, 2, imageRows(pictures(t, 4)...)...)))
	plain := filepath.Join(dir, "p.parquet")
	if err := parquet.WriteFile(plain, []line{{"a", time.Unix(0, 0), []int64{1}}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"i.parquet": "[image chip] image.bytes:images chip:images label:int64",
		"p.parquet": "[] name:text when:timestamp tags:list"} {
		files := countedFiles{}
		r, err := files.Open(t.Context(), filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		images, err := tableinfo.Images(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		summary, err := tableinfo.Parquet(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(images)
		for _, c := range summary.Columns {
			got += fmt.Sprintf(" %s:%s", c.Name, c.Type)
		}
		for word := range strings.FieldsSeq(want) {
			if !strings.Contains(got, strings.Trim(word, "[]")) {
				t.Errorf("%s: %s, want %s", name, got, word)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestForgedIndexes: below roots an index counts only where a raster is, so it cannot show the bytes of another file.
func TestForgedIndexes(t *testing.T) {
	dir := folder.Of(t, "a.tif", "b.tif", "c.tif")
	file := filepath.Join(dir, "c.parquet")
	folder.Index(t, file, build.Options{}, filepath.Join(dir, "a.tif"), filepath.Join(dir, "b.tif"),
		filepath.Join(dir, "c.tif"))
	folder.Write(t, filepath.Join(dir, "a.tif"), "a secret of many bytes")
	if err := os.Remove(filepath.Join(dir, "b.tif")); err != nil {
		t.Fatal(err)
	}
	for _, roots := range [][]string{nil, {"/"}, {dir}} {
		table := folder.Open(t, file, catalog.Options{Roots: roots})
		bounded := len(roots) > 0 && roots[0] == dir
		for row, kind := range []fault.Kind{fault.Unsupported, fault.NotFound, 0} {
			_, err := table.Asset(t.Context(), 0, int64(row))
			if !bounded && row == 0 {
				kind = 0
			}
			if !bounded && row == 1 {
				continue // nobody looks
			}
			if fault.KindOf(err) != kind {
				t.Errorf("below %q row %d: %v, want %v", roots, row, err, kind)
			}
		}
	}
}
