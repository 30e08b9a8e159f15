package catalog_test

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestFolders promises that the column "folder" of listings has the name of the folder of each sample's file, as a
// field and for scans, also where files are paired; and that tables do not have it.
func TestFolders(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	files := []string{"top.tif", "a/1.tif", "a/b/2.tif", "c/1.tif", "c/b/2.tif", "ü ö/3.tif"}
	for _, name := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, filepath.Join(dir, name), []byte("x"))
	}
	inFolders := catalog.Source{Field: "folder", Column: catalog.FolderColumn, Kind: catalog.Text}
	pairs := []catalog.Source{{Field: "image", Pattern: "c/{id}.tif"}, {Field: "mask", Pattern: "a/{id}.tif"},
		inFolders}
	for _, c := range []struct {
		src    string
		fields []catalog.Source
	}{
		{dir, []catalog.Source{{Field: "image"}, inFolders}},
		{filepath.Join(dir, "**", "*.tif"), []catalog.Source{{Field: "image"}, inFolders}},
		{dir, pairs},
	} {
		tab, err := catalog.Open(ctx, c.src, c.fields, catalog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var want, field, scan []string
		for row := range tab.Len() {
			id, err := tab.ID(ctx, row)
			if err != nil {
				t.Fatal(err)
			}
			of := path.Base(path.Dir(id))
			if of == "." {
				of = ""
			}
			v, err := tab.Value(ctx, len(c.fields)-1, row)
			if err != nil {
				t.Fatal(err)
			}
			want, field = append(want, of), append(field, string(v.Text))
		}
		kind, err := scanned(ctx, tab, catalog.FolderColumn, func(_ int64, v catalog.Value) error {
			scan = append(scan, string(v.Text))
			return nil
		})
		same := slices.Equal(want, field) && slices.Equal(want, scan)
		if err != nil || kind != catalog.Text || len(want) < 2 || !same {
			t.Errorf("%s: want %q, field %q, scan %q of kind %v, %v", c.src, want, field, scan, kind, err)
		}
		if err := tab.Close(); err != nil {
			t.Error(err)
		}
	}
	years := folder.Open(t, folder.Of(t, "2020/1.tif", "2021/2.tif"), catalog.Options{
		Columns: []string{"folder", "path", "name"}})
	for name, want := range map[string]catalog.Kind{"folder": catalog.Text, "path": catalog.Text, "name": catalog.Int} {
		kind, err := scanned(ctx, years, name, func(int64, catalog.Value) error { return nil })
		if err != nil || kind != want {
			t.Errorf("%s of years has %vs, want %vs, %v", name, kind, want, err)
		}
	}
	got := columns.Folders(column.Texts([]string{"https://h/a/b/1.tif?x=y/z", "s3://b/a?/1.tif"}))
	if cell(t, got, 0) != "b" || cell(t, got, 1) != "a?" {
		t.Errorf("folders of URLs: %q and %q", cell(t, got, 0), cell(t, got, 1))
	}
	csv := filepath.Join(dir, "t.csv")
	testfile.Write(t, csv, []byte("image\na/1.tif\n"))
	for src, fields := range map[string][]catalog.Source{
		csv: {{Field: "image"}, inFolders},
		dir: {{Field: "x", Column: catalog.FolderColumn, Kind: catalog.Raster}},
	} {
		if _, err := catalog.Open(ctx, src, fields, catalog.Options{}); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// cell returns the string of a row.
func cell(t *testing.T, c *columns.Column, row int64) string {
	t.Helper()
	v, err := c.Cell(t.Context(), row)
	if err != nil {
		t.Fatal(err)
	}
	return string(v.Text)
}

// TestNotRead promises that rasters of a format that is not read are named, with the way, in a folder, a glob and a
// pattern, also beside what is read.
func TestNotRead(t *testing.T) {
	for ext, want := range map[string]string{
		".jp2":  "a JPEG 2000 image, such as \"NAME.jp2\", is not read: convert it, as by 'gdal_translate -of COG",
		".grib": "a GRIB file", ".img": "HFA", ".webp": "a WebP image",
		".zip": "unpack it",
	} {
		dir := t.TempDir()
		write := func(name string) {
			testfile.Write(t, filepath.Join(dir, name), []byte("x"))
		}
		write("a" + ext)
		write("notes.txt")
		check := func(name, src string, fields ...catalog.Source) {
			_, err := catalog.Open(t.Context(), src, fields, catalog.Options{})
			if fault.KindOf(err) != fault.Unsupported ||
				!strings.Contains(err.Error(), strings.ReplaceAll(want, "NAME", name)) {
				t.Errorf("%s: %v", src, err)
			}
		}
		pattern := catalog.Source{Field: "image", Pattern: "{id}" + ext}
		check("a", dir, catalog.Source{Field: "image"})
		check("a", filepath.Join(dir, "*"+ext), catalog.Source{Field: "image"})
		check("a", dir, pattern)
		write("b.tif")
		check("{id}", dir, pattern)
	}
	dir := t.TempDir()
	testfile.Write(t, filepath.Join(dir, "notes.txt"), nil)
	if tab, err := catalog.Open(t.Context(), dir, nil, catalog.Options{}); err != nil || tab.Len() != 0 {
		t.Errorf("a folder of notes: %v", err)
	}
}
