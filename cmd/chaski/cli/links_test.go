package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestParentOfLink promises that every command takes "link/../x" for the file that the kernel opens by it.
// In the tree a/link leads to b/deep, and what is in b differs from what has the same name in a.
func TestParentOfLink(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"a/x.tif":     testdata(t, "raster", "tog", "tog-1x1.tif"),
		"b/x.tif":     testdata(t, "raster", "tog", "tog-odd-16.tif"),
		"a/set/y.tif": testdata(t, "raster", "tog", "tog-1x1.tif"),
		"b/set/y.tif": testdata(t, "raster", "tog", "tog-odd-16.tif"),
		"a/c.tacozip": testdata(t, "coast", "flat.tacozip"),
		"b/c.tacozip": testdata(t, "coast", "coast.tacozip"),
	}
	for to, from := range files {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o777)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		text := "image\nset/../x.tif\nset/y.tif\n"
		testfile.Write(t, filepath.Join(dir, name, "t.csv"), []byte(text))
	}
	if err := os.Mkdir(filepath.Join(dir, "b", "deep"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../b/deep", filepath.Join(dir, "a", "link")); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, filepath.Join(dir, "a", "up.csv"), []byte("image\nlink/../x.tif\n"))
	up := dir + "/a/link/.."
	for in, array := range map[string]string{"a": "dense_2d_order_rc", "b": "dense_1d_gaps"} {
		from := os.DirFS(testdata(t, "tiledb", "arrays", array))
		if err := os.CopyFS(filepath.Join(dir, in, "array"), from); err != nil {
			t.Fatal(err)
		}
	}
	sample := strings.Fields(chaski(t.Context(), "ls", "--leaves", dir+"/b/c.tacozip").out)
	if len(sample) == 0 {
		t.Fatal("no samples")
	}
	for _, args := range [][]string{
		{"cat", "UP/x.tif"}, {"info", "UP/x.tif"}, {"info", "UP/set"}, {"info", "UP/array"}, {"info", "UP/c.tacozip"},
		{"ls", "UP/c.tacozip"}, {"verify", "UP/set"}, {"stats", "--field", "image", "UP/set"},
		{"stats", "--field", "image", "UP/set/*.tif"}, {"stats", "--field", "image", "UP/t.csv"},
		{"cat", "UP/c.tacozip::" + sample[0]},
	} {
		by := func(prefix string) string {
			named := make([]string, len(args))
			for i, a := range args {
				named[i] = strings.Replace(a, "UP", prefix, 1)
			}
			r := chaski(t.Context(), named...)
			if r.code != 0 && prefix == dir+"/b" {
				t.Errorf("%q: %+v", named, r)
			}
			return strings.ReplaceAll(r.out+r.err, prefix, "UP")
		}
		link, kernel, text := by(up), by(dir+"/b"), by(dir+"/a")
		if link != kernel || kernel == text {
			t.Errorf("%q: %q; by the kernel %q, by the text %q", args, link, kernel, text)
		}
	}
	checkSize(t, dir+"/a/up.csv", dir+"/b/x.tif")

	// Catalogs in a folder that is a link, of files in folders beside where it leads and beside the link.
	for _, c := range []struct{ out, file, same string }{
		{"a/link/1.parquet", "a/x.tif", "a/x.tif"}, {"a/link/2.parquet", "b/x.tif", "b/x.tif"},
		{"a/link/../3.parquet", "a/link/../x.tif", "b/x.tif"}, {"a/4.parquet", "a/link/../x.tif", "b/x.tif"},
		{"a/link/5.parquet", "a/set/../x.tif", "a/x.tif"},
	} {
		r := chaski(t.Context(), "index", "--format", "parquet", "-o", dir+"/"+c.out, dir+"/"+c.file)
		if r.code != 0 {
			t.Errorf("%+v: %+v", c, r)
			continue
		}
		tab, err := catalog.Open(t.Context(), dir+"/"+c.out, nil, catalog.Options{})
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		a, err := tab.Asset(t.Context(), 0, 0)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		got, err := os.Stat(a.URI)
		want, werr := os.Stat(dir + "/" + c.same)
		if err != nil || werr != nil || !os.SameFile(got, want) {
			t.Errorf("%+v: %s, %v", c, a.URI, err)
		}
		if err := tab.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(dir + "/b/3.parquet"); err != nil {
		t.Error(err)
	}
}

// checkSize compares the size of the first raster of a table with that of a file.
func checkSize(t *testing.T, table, file string) {
	t.Helper()
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := catalog.Open(t.Context(), table, nil, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	if a, err := tab.Asset(t.Context(), 0, 0); err != nil || a.Size != st.Size() {
		t.Errorf("%s: %+v, %v; want %d bytes", table, a, err, st.Size())
	}
}
