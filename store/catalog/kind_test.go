package catalog_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestKindOfAColumn promises that no single row decides the kind of a column of strings: any order of its rows gives
// the same kind, or the same refusal.
func TestKindOfAColumn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	testfile.Write(t, path, []byte("x\n\"\"\nnan\nb.tif\nc.tif\nd\n"))
	_, err := catalog.Open(t.Context(), path, []catalog.Source{{Field: "x"}}, catalog.Options{})
	if err == nil || !strings.Contains(err.Error(), `row 2, "b.tif", names a raster and row 1, "nan", does not`) {
		t.Error(err)
	}
	for _, c := range []struct {
		rows []string
		kind catalog.Kind // 0: refused
	}{
		{[]string{"a.tif", "b.TIFF", "c.rumi"}, catalog.Raster},
		{[]string{"", "b.tif", ""}, catalog.Raster},
		{[]string{"a.jp2", "b.jp2", ""}, catalog.Text},
		{[]string{"forest", "a/b", "nan"}, catalog.Text},
		{[]string{"/vsisubfile/0_9,x.zip", "/vsisubfile/9,x.zip", "b.tif"}, catalog.Raster},
		{[]string{"https://h/a.tif?sig=b", "/vsicurl/https://h/b.tif?sig=c", "az://c/c.tif?sig=d"}, catalog.Raster},
		{[]string{"https://h/a?b=c", "a.tif?b", "/vsizip/x.zip"}, catalog.Text},
		{[]string{"/vsisubfile/0_9,x.zip", "forest"}, 0},
		{[]string{"nan", "b.tif", "c.tif"}, 0},
		{[]string{"a.tif", "b.jp2", "c.tif"}, 0},
		{[]string{"a", "b", "c.rumi"}, 0},
	} {
		for range len(c.rows) {
			c.rows = append(c.rows[1:], c.rows[0])
			file := filepath.Join(t.TempDir(), "t.csv")
			text := "n,path\n1,\"" + strings.Join(c.rows, "\"\n1,\"") + "\"\n"
			testfile.Write(t, file, []byte(text))
			for _, want := range []catalog.Kind{0, catalog.Raster, catalog.Text} {
				tab, err := catalog.Open(context.Background(), file,
					[]catalog.Source{{Field: "f", Column: "path", Kind: want}}, catalog.Options{})
				kind := c.kind
				if want != 0 {
					kind = want
				}
				switch {
				case kind == 0 && (fault.KindOf(err) != fault.Unsupported ||
					!strings.Contains(err.Error(), "names a raster")):
					t.Errorf("%q: %v", c.rows, err)
				case kind != 0 && (err != nil || tab.Kind(0) != kind):
					t.Errorf("%q as %v: %v", c.rows, want, err)
				}
				if err == nil {
					_ = tab.Close()
				}
			}
		}
	}
}

// TestPathsOfAFolder promises that the path of a sample's file can be a metadata column, also for paired files.
func TestPathsOfAFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"img/a.tif", "img/b.tif", "mask/b.tif", "mask/a.tif"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, filepath.Join(dir, name), []byte("x"))
	}
	tab, err := catalog.Open(context.Background(), dir, []catalog.Source{
		{Field: "image", Pattern: "img/{id}.tif"}, {Field: "path", Pattern: "mask/{id}.tif", Kind: catalog.Text},
	}, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tab.Close() }()
	var got []string
	for row := range tab.Len() {
		v, err := tab.Value(context.Background(), 1, row)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(v.Text))
	}
	if !slices.Equal(got, []string{"mask/a.tif", "mask/b.tif"}) || tab.Kind(1) != catalog.Text {
		t.Errorf("%q of kind %v", got, tab.Kind(1))
	}
}
