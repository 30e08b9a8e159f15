package catalog_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// labelPaths opens a dataset of images with files beside them, and returns the path of each row's file, "" for null.
func labelPaths(t *testing.T, src, pattern string, o catalog.Options) (out []string, fingerprint string) {
	t.Helper()
	table := folder.Open(t, src, o, catalog.Source{Field: "image", Pattern: "{id}.png"},
		catalog.Source{Field: "roof", Pattern: pattern, Beside: true, Optional: true})
	if table.Kind(1) != catalog.Text {
		t.Errorf("paths of shapes are %vs", table.Kind(1))
	}
	for row := range table.Len() {
		value, err := table.Value(t.Context(), 1, row)
		if err != nil {
			t.Fatal(err)
		}
		if out = append(out, string(value.Text)); value.Null != (len(value.Text) == 0) {
			t.Errorf("row %d: %+v", row, value)
		}
	}
	return out, table.Fingerprint()
}

// TestFilesOfShapesBesideImages: a pattern of files that are no rasters finds them below a directory and in a bucket,
// in another folder and by their URIs. The fingerprint depends on which images have one, and on its size, but not on
// where all of them lie.
func TestFilesOfShapesBesideImages(t *testing.T) {
	png := string(pictures(t, 4)[1])
	images := []string{"d/images/1.png=" + png, "d/images/2.png=" + png, "d/images/3.png=" + png,
		"d/labels/1_x.geojson=one", "d/labels/3_x.geojson=three", "d/labels/9_x.geojson=9", "d/labels/3_y.geojson=3",
		"d/labels/x.tar=of no format"}
	want := func(base string) []string { return []string{base + "1_x.geojson", "", base + "3_x.geojson"} }
	root := folder.Of(t, images...)
	local := filepath.Join(root, "d/images")
	remote := catalog.Options{Opener: bucket{root}}
	relative, absolute := filepath.Join(local, "c.parquet"), filepath.Join(root, "absolute.parquet")
	folder.Index(t, relative, build.Options{}, local+"/*.png")
	folder.Index(t, absolute, build.Options{Absolute: true}, local+"/*.png")
	prints := map[string]bool{}
	for _, c := range []struct {
		src, pattern, base string
		o                  catalog.Options
	}{
		{local, "../labels/{id}_x.geojson", filepath.Join(root, "d/labels") + "/", catalog.Options{}},
		{local, root + "/d/labels/{id}_x.geojson", filepath.Join(root, "d/labels") + "/", catalog.Options{}},
		{relative, "../labels/{id}_x.geojson", filepath.Join(root, "d/labels") + "/", catalog.Options{}},
		{absolute, "../labels/{id}_x.geojson", filepath.Join(root, "d/labels") + "/", catalog.Options{}},
		{"s3://bucket/d/images", "../labels/{id}_x.geojson", "s3://bucket/d/labels/", remote},
		{"s3://bucket/d/images", "s3://bucket/d/labels/{id}_x.geojson", "s3://bucket/d/labels/", remote},
	} {
		got, fingerprint := labelPaths(t, c.src, c.pattern, c.o)
		if !slices.Equal(got, want(c.base)) {
			t.Errorf("%s, %s: %q", c.src, c.pattern, got)
		}
		prints[fingerprint] = true
	}
	if len(prints) != 1 {
		t.Errorf("%d fingerprints of the same files", len(prints))
	}
	for _, other := range []string{"d/labels/1_x.geojson=longer", "d/labels/2_x.geojson=two"} {
		dir := folder.Of(t, append(slices.Clone(images), other)...)
		if _, got := labelPaths(t, filepath.Join(dir, "d/images"), "../labels/{id}_x.geojson",
			catalog.Options{}); prints[got] {
			t.Errorf("%s has the fingerprint of other files", other)
		}
	}
	// Roots hold for the folder of a pattern, too.
	_, err := catalog.Open(t.Context(), local, []catalog.Source{{Field: "image", Pattern: "{id}.png"},
		{Field: "roof", Kind: catalog.Text, Pattern: "../labels/{id}_x.geojson", Beside: true}},
		catalog.Options{Roots: []string{local}})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("outside of the roots: %v", err)
	}
}
