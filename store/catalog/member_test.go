package catalog_test

import (
	"bytes"
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestMembersOutOfPlace: a row that puts a member of a container where no file has bytes is corrupt, whether the
// catalog knows the size of the file or not.
func TestMembersOutOfPlace(t *testing.T) {
	x := &chunk.Index{
		Height: 2, Width: 3, Bands: 1, ChunkH: 2, ChunkW: 3, ChunkB: 1, DType: chunk.Uint8,
		Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Off: 1000, Len: 6}},
	}
	blob := blob.Append(nil, x)
	type member struct {
		URI    string `parquet:"uri"`
		Index  []byte `parquet:"chaski:index"`
		Offset int64  `parquet:"chaski:offset"`
		Length int64  `parquet:"chaski:length"`
		Size   int64  `parquet:"size"`
	}
	rows := []member{
		{"a.tacozip::x", blob, 10, 1006, 5000}, {"a.tacozip::x", blob, 10, 1006, 1016},
		{"a.tacozip::x", blob, 0, 1006, 1006}, {"a.tacozip::x", blob, 0, 1006, 0},
		{"a.tacozip::x", blob, math.MaxInt64 - 500, 1006, 0}, {"a.tacozip::x", blob, math.MaxInt64 - 500, 1006, -1},
		{"a.tacozip::x", blob, 10, math.MaxInt64, 0}, {"a.tacozip::x", blob, 10, 1005, 5000},
		{"a.tacozip::x", blob, 4000, 1006, 5000}, {"a.tacozip::x", blob, 0, 1006, 1},
		{"a.tacozip::x", blob, -1, 1006, 0}, {"a.tacozip::x", blob, 10, -1, 0}, {"a.tif", blob, 10, 1006, 5000},
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "members.parquet")
	testfile.Write(t, path, b.Bytes())
	tab := folder.Open(t, path, catalog.Options{})
	for i := range rows {
		a, err := tab.Asset(t.Context(), 0, int64(i))
		switch {
		case i < 4:
			if err != nil || a.Index.Ranges[0].Off != 1000+rows[i].Offset || a.Member != "x" {
				t.Errorf("%+v, %v", a, err)
			}
		case !errors.Is(err, fault.Corrupt):
			t.Errorf("row %d: %+v, %v", i, a.Index, err)
		}
	}
}
