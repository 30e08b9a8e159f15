package catalog_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// zarrStore returns the files of a Zarr array of bytes without chunks below a directory.
func zarrStore(dir, dims string, shape ...int) string {
	names, sizes := fmt.Sprintf("%q", strings.Fields(dims)), fmt.Sprint(shape)
	list := strings.NewReplacer(" ", ",")
	return dir + `/zarr.json={"zarr_format":3,"node_type":"array","shape":` + list.Replace(sizes) + `,"data_type":` +
		`"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":` + list.Replace(sizes) + `}},` +
		`"chunk_key_encoding":{"name":"default"},"fill_value":7,"codecs":["bytes"],"dimension_names":` +
		list.Replace(names) + `}`
}

// TestRemoteStores: the objects of a Zarr store are one file of a listing, whose images are samples. Rasters in the
// same folder leave stores out, unless a glob names them.
func TestRemoteStores(t *testing.T) {
	b := bucket{folder.Of(t, zarrStore("d/b.zarr", "n y x", 2, 4, 4), zarrStore("d/a.zarr", "n y x", 3, 4, 4),
		"d/a.zarr/c/x=",
		"d/readme.txt=", zarrStore("e/a.zarr", "y x", 4, 4), zarrStore("e/b.zarr", "n y x", 2, 4, 4),
		zarrStore("f/a.zarr", "n y x", 65537, 4, 4), zarrStore("h/a.zarr", "n y x", 65536, 4, 4),
		"g/1.tif=", zarrStore("g/a.zarr", "n y x", 2, 4, 4))}
	o := catalog.Options{Opener: b}
	want := []string{"a.zarr::0", "a.zarr::1", "a.zarr::2", "b.zarr::0", "b.zarr::1"}
	for _, name := range []string{"s3://bucket/d", "s3://bucket/d/*.zarr"} {
		table := folder.Open(t, name, o, catalog.Source{Field: "image"})
		if got := folder.IDs(t, table); !slices.Equal(got, want) {
			t.Errorf("%s: samples %q", name, got)
		}
		a, err := table.Asset(t.Context(), 0, 4)
		if err != nil || a.Index.Grid.Image != 1 || a.Index.Height != 4 {
			t.Errorf("%s: %+v, %v", name, a.Index, err)
		}
	}
	single := folder.Open(t, "s3://bucket/e", o, catalog.Source{Field: "image"})
	if a, err := single.Asset(t.Context(), 0, 0); err != nil || a.Index.Grid.Image != 0 {
		t.Errorf("the first sample: %+v, %v", a.Index, err)
	}
	if _, err := single.Asset(t.Context(), 0, 1); single.Len() != 2 || fault.KindOf(err) != fault.Unsupported {
		t.Errorf("%d samples; two images where the first store has no axis n: %v", single.Len(), err)
	}
	if _, err := catalog.Open(t.Context(), "s3://bucket/f", nil, o); fault.KindOf(err) != fault.Limit {
		t.Errorf("65537 images: %v", err)
	}
	if n := folder.Open(t, "s3://bucket/h", o, catalog.Source{Field: "image"}).Len(); n != 65536 {
		t.Errorf("%d samples of 65536 images", n)
	}
	table := folder.Open(t, "s3://bucket/g", o, catalog.Source{Field: "image"})
	if got := folder.IDs(t, table); !slices.Equal(got, []string{"1.tif"}) {
		t.Errorf("beside a raster: %q", got)
	}
	if got := folder.Open(t, "s3://bucket/g/*.zarr", o, catalog.Source{Field: "image"}).Len(); got != 2 {
		t.Errorf("a glob of stores: %d samples", got)
	}
}

// TestArraysOfStores: a pattern names the arrays of the groups that its files are; the store itself is no array.
func TestArraysOfStores(t *testing.T) {
	const group = `/zarr.json={"zarr_format":3,"node_type":"group","attributes":{}}`
	dir := folder.Of(t, "d/a.zarr"+group, zarrStore("d/a.zarr/nir", "y x", 4, 5),
		zarrStore("d/a.zarr/red", "y x", 4, 5), "d/b.zarr"+group, zarrStore("d/b.zarr/red", "y x", 4, 5), "d/c.txt=",
		"d/e.tif")
	open := func(pattern string, o catalog.Options) (*catalog.Table, error) {
		field := catalog.Source{Field: "image", Pattern: pattern}
		return catalog.Open(t.Context(), filepath.Join(dir, "d"), []catalog.Source{field}, o)
	}
	for pattern, want := range map[string]string{"{id}.zarr::{band}": "a.zarr/nir a.zarr/red b.zarr/red",
		"{id}.zarr::*": "", "a.zarr::{band}": "a.zarr/nir a.zarr/red", "{id}.zarr::red": "a.zarr/red b.zarr/red",
		"{id}.zarr::r*": "a.zarr/red b.zarr/red"} {
		table, err := open(pattern, catalog.Options{})
		if err != nil {
			if want != "" || fault.KindOf(err) != fault.Corrupt { // two arrays of one id
				t.Errorf("%s: %v", pattern, err)
			}
			continue
		}
		var got []string
		for row := range table.Len() {
			a, err := table.Asset(t.Context(), 0, row)
			if err != nil || a.Index.Height != 4 || a.Index.Width != 5 || !table.HasStores() {
				t.Errorf("%s: %+v, %v", pattern, a.Index, err)
			}
			got = append(got, strings.TrimPrefix(a.URI, filepath.Join(dir, "d")+"/"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", pattern, got, want)
		}
		_ = table.Close()
	}
	folder.Write(t, filepath.Join(dir, "d", "b.zarr", "zarr.json"), "{")
	if _, err := open("{id}.zarr::{band}", catalog.Options{}); fault.KindOf(err) == 0 {
		t.Errorf("a broken store: %v", err)
	}
	if table, err := open("{id}.zarr", catalog.Options{}); err != nil || table.Len() != 2 || table.Close() != nil {
		t.Errorf("a broken store that is a sample: %v", err)
	}
	if folder.Open(t, folder.Of(t, "a.tif"), catalog.Options{}).HasStores() {
		t.Error("a raster is a store")
	}
}

// TestImagesOfStores: stores of one sample have as many images, of which each is a sample.
func TestImagesOfStores(t *testing.T) {
	dir := folder.Of(t, zarrStore("a.zarr", "n y x", 2, 4, 4), zarrStore("b.zarr", "n y x", 2, 5, 4),
		zarrStore("c.zarr", "n y x", 3, 4, 4), "m/1.tif", "m/2.tif",
		"t.csv=x,y,z,n\na.zarr,b.zarr,m/1.tif,1\nc.zarr,c.zarr,m/2.tif,2\n", "u.csv=x,y\na.zarr,c.zarr\n",
		"v.csv=x,y\na.zarr,d.zarr\n", "w.csv=x,y\nd.zarr,\na.zarr,\n")
	fields := []catalog.Source{{Field: "x", Kind: catalog.Raster}, {Field: "y", Kind: catalog.Raster}, {Field: "z"},
		{Field: "n"}}
	table := folder.Open(t, filepath.Join(dir, "t.csv"), catalog.Options{}, fields...)
	want := []string{"a.zarr::0", "a.zarr::1", "c.zarr::0", "c.zarr::1", "c.zarr::2"}
	if got := folder.IDs(t, table); !slices.Equal(got, want) {
		t.Errorf("samples %q", got)
	}
	if got := fmt.Sprint(valuesOf(t, table, 3)); got != "[1 1 2 2 2]" {
		t.Errorf("their numbers: %s", got)
	}
	paths, err := table.Paths(t.Context(), 0)
	if err != nil || !slices.Equal(paths, []string{filepath.Join(dir, "a.zarr"), filepath.Join(dir, "c.zarr")}) {
		t.Errorf("files %q, %v", paths, err)
	}
	for row := range table.Len() {
		number := []int64{0, 1, 0, 1, 2}[row]
		for field := range 3 {
			a, err := table.Asset(t.Context(), field, row)
			if err != nil || field < 2 && a.Index.Grid.Image != number || field == 2 && a.Index.Grid != nil {
				t.Errorf("row %d field %d: %+v, %v", row, field, a.Index, err)
			} else if field == 1 && (a.Index.Height == 5) != (row < 2) {
				t.Errorf("row %d has another store: %+v", row, a.Index)
			}
		}
	}
	folder.Write(t, filepath.Join(dir, "mixed.csv"), "x\na.zarr\nm/1.tif\n")
	mixed := folder.Open(t, filepath.Join(dir, "mixed.csv"), catalog.Options{}, fields[0])
	if got := fmt.Sprint(folder.IDs(t, mixed)); got != "[a.zarr::0 a.zarr::1 m/1.tif::0]" {
		t.Errorf("a raster among stores: %s", got)
	}
	for src, kind := range map[string]fault.Kind{"u.csv": fault.Unsupported, "v.csv": fault.NotFound,
		"w.csv": fault.NotFound} {
		_, err := catalog.Open(t.Context(), filepath.Join(dir, src), fields[:2], catalog.Options{})
		if fault.KindOf(err) != kind {
			t.Errorf("%s: %v, want %v", src, err, kind)
		}
	}
}

// TestStoresOfTables: null and other text is no store, and a store that cannot be read is one. Its first image stands
// for it.
func TestStoresOfTables(t *testing.T) {
	dir := folder.Of(t, zarrStore("a.zarr", "n y x", 2, 4, 4), zarrStore("b.zarr", "y x", 4, 4),
		zarrStore("x/1.zarr", "n y x", 2, 4, 4), zarrStore("x/2.zarr", "n y x", 1, 4, 4),
		zarrStore("y/1.zarr", "n y x", 2, 5, 4), zarrStore("y/2.zarr", "n y x", 1, 5, 4),
		"a.csv=x\na.zarr\n", "null.csv=x,n\n,1\nb.zarr,2\n", "none.csv=x\nnone.zarr\n")
	x := catalog.Source{Field: "x", Kind: catalog.Raster}
	for name, c := range map[string]struct {
		field  catalog.Source
		stores bool
		rows   int64
	}{"a.csv": {catalog.Source{Field: "x", Kind: catalog.Text}, false, 1}, "null.csv": {x, true, 2},
		"none.csv": {x, true, 1}} {
		table := folder.Open(t, filepath.Join(dir, name), catalog.Options{}, c.field)
		if table.HasStores() != c.stores || table.Len() != c.rows {
			t.Errorf("%s: stores %v, %d rows", name, table.HasStores(), table.Len())
		}
	}
	uri := filepath.Join(dir, "a.zarr")
	a, err := catalog.OpenStore(t.Context(), &openers.Files{}, uri, "x", "", "", 0)
	if err != nil || a.Index.Grid.Image != 0 {
		t.Errorf("%+v, %v", a.Index, err)
	}
	pairs := folder.Open(t, dir, catalog.Options{}, catalog.Source{Field: "x", Pattern: "x/{id}.zarr"},
		catalog.Source{Field: "y", Pattern: "y/{id}.zarr"})
	for row, want := range []string{"y/1.zarr", "y/1.zarr", "y/2.zarr"} {
		if a, err := pairs.Asset(t.Context(), 1, int64(row)); err != nil || a.URI != filepath.Join(dir, want) {
			t.Errorf("row %d: %s, %v, want %s", row, a.URI, err, want)
		}
	}
	table := folder.Open(t, filepath.Join(dir, "a.csv"), catalog.Options{CacheBytes: 1}, x) // which keeps no asset
	_, one, _ := strings.Cut(zarrStore("a.zarr", "n y x", 1, 4, 4), "=")
	folder.Write(t, filepath.Join(uri, "zarr.json"), one)
	for row, kind := range []fault.Kind{0, fault.Corrupt} {
		if a, err := table.Asset(t.Context(), 0, int64(row)); fault.KindOf(err) != kind {
			t.Errorf("image %d of the store that has one now: %+v, %v", row, a.Index, err)
		}
	}
}
