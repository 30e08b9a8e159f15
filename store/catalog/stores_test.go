package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
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
		zarrStore("f/a.zarr", "n y x", 65537, 4, 4), "g/1.tif=", zarrStore("g/a.zarr", "n y x", 2, 4, 4))}
	o := catalog.Options{Opener: b}
	want := []string{"a.zarr::0", "a.zarr::1", "a.zarr::2", "b.zarr::0", "b.zarr::1"}
	for _, name := range []string{"s3://bucket/d", "s3://bucket/d/*.zarr"} {
		table := folder.Open(t, name, o, catalog.Source{Field: "image"})
		if got := folder.IDs(t, table); !slices.Equal(got, want) {
			t.Errorf("%s: samples %q", name, got)
		}
		a, err := table.Asset(t.Context(), 0, 4)
		if err != nil || a.Index.Blocks.Image != 1 || a.Index.Height != 4 {
			t.Errorf("%s: %+v, %v", name, a.Index, err)
		}
	}
	single := folder.Open(t, "s3://bucket/e", o, catalog.Source{Field: "image"})
	if _, err := single.Asset(t.Context(), 0, 1); single.Len() != 2 || fault.KindOf(err) != fault.Unsupported {
		t.Errorf("%d samples; two images where the first store has no axis n: %v", single.Len(), err)
	}
	if _, err := catalog.Open(t.Context(), "s3://bucket/f", nil, o); fault.KindOf(err) != fault.Limit {
		t.Errorf("65537 images: %v", err)
	}
	table := folder.Open(t, "s3://bucket/g", o, catalog.Source{Field: "image"})
	if got := folder.IDs(t, table); !slices.Equal(got, []string{"1.tif"}) {
		t.Errorf("beside a raster: %q", got)
	}
	if got := folder.Open(t, "s3://bucket/g/*.zarr", o, catalog.Source{Field: "image"}).Len(); got != 2 {
		t.Errorf("a glob of stores: %d samples", got)
	}
}
