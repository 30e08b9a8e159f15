package containers_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestSamplesAreTheirFiles: places, names and indexes of samples, which columns of a container say, are those of their
// files.
func TestSamplesAreTheirFiles(t *testing.T) {
	places := 0
	for src, fields := range map[string][]loader.Field{coast(t, "coast.tacozip"): coastFields,
		coast(t, "parts"): coastFields, coast(t, "coast_dir"): coastFields, coast(t, "flat.tacozip"): nil,
		filepath.Join(corpus.Testdata(t), "taco3", "scenes"): nil} {
		sp, o := loader.Spec{Source: src, BatchSize: 1, Fields: fields, AllFields: fields == nil}, loader.Options{}
		table, err := survey.OpenTable(t.Context(), &sp, &o)
		if err != nil {
			t.Error(src, err)
			continue
		}
		for i := range table.Fields {
			for row := range table.N {
				if table.Fields[i].Kind != catalog.Raster || table.Lacks(i, row) {
					continue
				}
				asset, err := table.Fields[i].Asset(t.Context(), row)
				if err != nil {
					t.Fatal(src, err)
				}
				uri := asset.URI
				if asset.Offset > 0 {
					uri = fmt.Sprintf("/vsisubfile/%d_%d,%s", asset.Offset, asset.Length, uri)
				}
				file, _, err := catalog.OpenAsset(t.Context(), o.Opener, uri, 0)
				if err != nil {
					t.Fatal(uri, err)
				}
				if asset.Place != nil {
					places++
				}
				x, want := asset.Index, file.Index.Shift(asset.Offset)
				if !reflect.DeepEqual(asset.Place, file.Place) || !reflect.DeepEqual(x.Ranges, want.Ranges) ||
					x.Height != want.Height || x.Width != want.Width || x.Bands != want.Bands || x.DType != want.DType {
					t.Errorf("%s row %d: %+v, %+v, want %+v, %+v", src, row, asset.Place, x, file.Place, want)
				}
			}
		}
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	}
	if places == 0 {
		t.Error("no place is known")
	}
}
