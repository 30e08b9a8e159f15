package containers

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestHeadersInContainers: where a container has the headers of its rasters, with their names and places, assets are
// those of the files, and none of these is opened. The collection names the bands of a sensor; conditions see the
// columns of side tables.
func TestHeadersInContainers(t *testing.T) {
	data, dir, files := corpus.Testdata(t), t.TempDir(), &openers.Files{}
	set := &build.Taco{Samples: &build.Tortilla{}, Collection: build.Collection{ID: "headers", DatasetVersion: "1",
		Description: "d", Licenses: []string{"CC0-1.0"}, Providers: []map[string]any{{"name": "Ana"}},
		Tasks: []string{"classification"}, More: map[string]json.RawMessage{"optical_data": json.RawMessage(
			`{"sensor": "mine", "bands": [{"name": "B1"}, {"common_name": "red"}]}`)}}}
	var want []catalog.Asset
	var blobs [][]byte
	var names, crs []string
	var transforms []float64
	for i, name := range []string{"beside/pam.tif", "extras/scaled.tif"} {
		path := filepath.Join(dir, fmt.Sprint(i, ".tif"))
		testfile.Write(t, path, testfile.Read(t, filepath.Join(data, name)))
		a, m, err := catalog.OpenAsset(t.Context(), files, path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if m.Transform == nil {
			m.Transform, m.EPSG = &[6]float64{5e5, 10, 0, 4.6e6, 0, -10}, 32630
			a.Place = catalog.NewPlace(m.EPSG, m.Transform, a.Index.Height, a.Index.Width)
		}
		want, blobs, names = append(want, a), append(blobs, m.Blob), append(names, catalog.NamesText(a.Names))
		crs, transforms = append(crs, fmt.Sprint("EPSG:", m.EPSG)), append(transforms, m.Transform[:]...)
		below := &build.Tortilla{Samples: []build.Sample{{ID: "image.tif", File: path}}}
		set.Samples.Samples = append(set.Samples.Samples, build.Sample{ID: fmt.Sprint("s", i), Children: below})
	}
	set.Columns = func(context.Context, []build.Level) ([]*tables.Table, error) {
		floats := tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64}, transforms, nil)
		return []*tables.Table{nil, tables.FromVectors(
			[]string{"header", catalog.NamesColumn, "stac:crs", "stac:geotransform"},
			[]*tables.Vector{build.Bytes(2, func(i int) []byte { return blobs[i] }), tables.NewStrings(names, nil),
				tables.NewStrings(crs, nil), tables.NewList(floats, []uint32{0, 6, 12}, nil)})}, nil
	}
	side := filepath.Join(dir, "side.csv")
	testfile.Write(t, side, []byte("id,score\ns1,7\ns0,5\n"))
	for _, name := range []string{"c.tacozip", "c"} {
		path := filepath.Join(dir, name)
		if _, err := build.Create(t.Context(), set, path, build.Options{}); err != nil {
			t.Fatal(err)
		}
		sp, o := spec.Spec{Source: path, BatchSize: 1, Fields: []spec.Field{{Name: "image", Column: "image.tif",
			Blob: "header"}}}, options(t)
		sp.Tables = []spec.SideTable{{Path: side, On: "id"}}
		sp.Where = []spec.Condition{{Column: "score", Op: ">", Value: json.RawMessage("5")}}
		if table, err := survey.OpenTable(t.Context(), &sp, &o); err != nil || table.N != 1 {
			t.Errorf("%s: %+v, %v", name, table, err)
		} else if id, err := table.ID(t.Context(), 0); err != nil || id != "s1" {
			t.Errorf("%s: score over 5 has %s, %v", name, id, err)
		} else if err := table.Close(); err != nil {
			t.Error(err)
		}
		sp.Subset = spec.Subset{}
		table, err := survey.OpenTable(t.Context(), &sp, &o)
		if err != nil {
			t.Error(name, err)
			continue
		}
		for row := range table.N {
			a, err := table.Fields[0].Asset(t.Context(), row)
			x := want[row].Index.Shift(a.Offset)
			if err != nil || !reflect.DeepEqual(a.Place, want[row].Place) || !slices.Equal(a.Names, want[row].Names) ||
				!slices.Equal(a.Index.Ranges, x.Ranges) || len(a.Bytes) > 0 {
				t.Errorf("%s: row %d: %+v, %+v, want %+v, %+v: %v", name, row, a, a.Place, want[row], want[row].Place,
					err)
			}
		}
		if _, err := table.Column(t.Context(), "image.tif@stac:geotransform"); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: a column of lists: %v", name, err)
		}
		if got := table.BandNames(); !slices.Equal(got, []string{"B1", "red"}) {
			t.Errorf("bands %q", got)
		}
		if err := table.Close(); err != nil {
			t.Error(err)
		}
		info, err := describe(t.Context(), path, nil, o)
		if err != nil || info.(*Info).Sensor != "mine" || !slices.Equal(info.(*Info).Bands, []string{"B1", ""}) ||
			info.(*Info).Files != nil {
			t.Errorf("%+v, %v", info, err)
		}
		// A header that leads out of its raster is refused.
		blobs[0], sp.Source = blob.Append(nil, want[0].Index.Shift(1<<12)), filepath.Join(dir, "forged-"+name)
		if _, err := build.Create(t.Context(), set, sp.Source, build.Options{}); err != nil {
			t.Fatal(err)
		}
		blobs[0] = blob.Append(nil, want[0].Index)
		forged, err := survey.OpenTable(t.Context(), &sp, &o)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := forged.Fields[0].Asset(t.Context(), 0); name != "c" && fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%s: %+v, %v", sp.Source, a, err)
		}
		if err := forged.Close(); err != nil {
			t.Error(err)
		}
		about := Describe(opened(t, o, []string{path}))
		if about.IDColumn != "id" || about.Levels != 2 || !slices.Equal(about.Parts, []string{path}) ||
			!strings.Contains(string(about.Collection), "headers") || !strings.HasPrefix(about.Format, "TACO 2") {
			t.Errorf("%+v", about)
		}
	}
}

// TestCollection: members of a collection of other types are left out; the task of TACO 0.2 is one of tasks.
func TestCollection(t *testing.T) {
	for doc, want := range map[string]Info{
		`{"task": "a", "id": "x"}`:  {Tasks: []string{"a"}, ID: "x"},
		`{"task": ""}`:              {},
		`{"task": 3, "title": "t"}`: {Title: "t"},
		`{"tasks": ["b"], "task": "a", "taco:version": "3.0"}`: {Tasks: []string{"b", "a"}, Version: "3.0"},
		`{"id": 3, "taco_version": "2"}`:                       {Version: "2"},
		`no JSON`:                                              {},
	} {
		var got Info
		got.collection(json.RawMessage(doc))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", doc, got, want)
		}
	}
}
