package containers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// headed is samples of two rasters, whose headers, names and places columns have. want has the assets of their files.
type headed struct {
	want       []catalog.Asset
	blobs      [][]byte
	names, crs []string
	transforms [][6]float64
	trees      sampleTrees
}

func newHeaded(t *testing.T, dir string) *headed {
	t.Helper()
	h, files := &headed{}, &openers.Files{}
	h.trees.more = map[string]json.RawMessage{"optical_data": json.RawMessage(
		`{"sensor": "mine", "bands": [{"name": "B1"}, {"common_name": "red"}]}`)}
	for i, name := range []string{"beside/pam.tif", "extras/scaled.tif"} {
		path := filepath.Join(dir, fmt.Sprint(i, ".tif"))
		testfile.Write(t, path, testfile.Read(t, filepath.Join(corpus.Testdata(t), name)))
		a, m, err := catalog.OpenAsset(t.Context(), files, path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if m.Transform == nil {
			m.Transform, m.EPSG = &[6]float64{5e5, 10, 0, 4.6e6, 0, -10}, 32630
			a.Place = catalog.NewPlace(m.EPSG, m.Transform, a.Index.Height, a.Index.Width)
		}
		h.want, h.blobs = append(h.want, a), append(h.blobs, m.Blob)
		h.names = append(h.names, catalog.NamesText(a.Names))
		h.crs, h.transforms = append(h.crs, fmt.Sprint("EPSG:", m.EPSG)), append(h.transforms, *m.Transform)
		h.trees.samples = append(h.trees.samples, folder(fmt.Sprint("s", i), bytesOf("a.txt"),
			build.Sample{ID: "image.tif", File: path}))
	}
	return h
}

// write writes a container in a form. Its rasters are the second rows of their samples. In TACO 3 the samples have
// their places and shapes.
func (h *headed) write(t *testing.T, path string, form build.Form) string {
	t.Helper()
	var transforms []float64
	var sides []int64
	for i, transform := range h.transforms {
		transforms = append(transforms, transform[:]...)
		sides = append(sides, int64(h.want[i].Index.Height), int64(h.want[i].Index.Width))
	}
	second := func(list []string) *tables.Vector {
		return tables.NewStrings([]string{"", list[0], "", list[1]}, nil)
	}
	blobs := func(row int) []byte { return [][]byte{{}, h.blobs[0], {}, h.blobs[1]}[row] }
	floats := tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64}, transforms, nil)
	ints := tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, sides, nil)
	columns := []string{"chaski:index", catalog.NamesColumn, "stac:crs", "stac:geotransform"}
	values := []*tables.Vector{build.Bytes(4, blobs), second(h.names), second(h.crs),
		tables.NewList(floats, []uint32{0, 0, 6, 6, 12}, nil)}
	h.trees.columns = []*tables.Table{nil, tables.FromVectors(columns, values)}
	if form.Named() {
		h.trees.columns = []*tables.Table{tables.FromVectors(
			[]string{"stac:crs", "stac:geotransform", "stac:tensor_shape"},
			[]*tables.Vector{tables.NewStrings(h.crs, nil), tables.NewList(floats, []uint32{0, 6, 12}, nil),
				tables.NewList(ints, []uint32{0, 2, 4}, nil)}), tables.FromVectors(columns[:2], values[:2])}
	}
	return h.trees.write(t, path, form)
}

// TestHeadersInContainers: where a container has the headers of its rasters, with their names and places, assets are
// those of the files, and none of these is opened. The collection names the bands of a sensor; conditions see the
// columns of side tables.
func TestHeadersInContainers(t *testing.T) {
	dir, o := t.TempDir(), options(t)
	set := newHeaded(t, dir)
	side := filepath.Join(dir, "side.csv")
	testfile.Write(t, side, []byte("id,score\ns1,7\ns0,5\n"))
	for name, form := range map[string]build.Form{"c.tacozip": build.ZIP, "c": build.Folder, "c.zip": build.Cozip,
		"c3": build.CozipFolder} {
		path := set.write(t, filepath.Join(dir, name), form)
		sp := spec.Spec{Source: path, Fields: []spec.Field{{Name: "image", Column: "image.tif"}}}
		if !form.OneFile() {
			if err := os.RemoveAll(filepath.Join(path, "DATA")); err != nil { // only the headers are asked for
				t.Fatal(err)
			}
		}
		sp.Tables = []spec.SideTable{{Path: side, On: "id"}}
		sp.Where = []spec.Condition{{Column: "score", Op: ">", Value: json.RawMessage("5")}}
		if made, err := table(t, sp, o); err != nil || made.N != 1 {
			t.Errorf("%s: %+v, %v", name, made, err)
		} else if id, err := made.ID(t.Context(), 0); err != nil || id != "s1" {
			t.Errorf("%s: score over 5 has %s, %v", name, id, err)
		}
		sp.Subset = spec.Subset{}
		made, err := table(t, sp, o)
		if err != nil {
			t.Error(name, err)
			continue
		}
		for row, want := range set.want {
			a, err := made.Fields[0].Asset(t.Context(), int64(row))
			if err != nil || !reflect.DeepEqual(a.Place, want.Place) || !slices.Equal(a.Names, want.Names) ||
				!slices.Equal(a.Index.Ranges, want.Index.Shift(a.Offset).Ranges) || len(a.Bytes) > 0 {
				t.Errorf("%s: row %d: %+v, %+v, want %+v, %+v: %v", name, row, a, a.Place, want, want.Place, err)
			}
		}
		lists := map[bool]string{false: "image.tif@stac:geotransform", true: "spatial:proj_transform"}[form.Named()]
		for column, says := range map[string]string{"image.tif@chaski:index": "holds values of type binary",
			lists: "column " + lists + ": holds lists: unsupported"} {
			if _, err := made.Column(t.Context(), column); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", name, err, says)
			}
		}
		info, err := new(kind).Describe(t.Context(), path, o)
		if err != nil || info.(*Info).Files != nil || !form.Named() && (info.(*Info).Sensor != "mine" ||
			!slices.Equal(made.BandNames(), []string{"B1", "red"}) ||
			!slices.Equal(info.(*Info).Bands, []string{"B1", ""})) {
			t.Errorf("%s: %+v, %v, %q", name, info, err, made.BandNames())
		}
		about := opened(t, o, []string{path}).About()
		if about.IDColumn != "id" || about.Levels != 2 || !slices.Equal(about.Parts, []string{path}) ||
			!strings.Contains(string(about.Collection), "made") || !strings.HasPrefix(about.Format, "TACO ") {
			t.Errorf("%s: %+v", name, about)
		}
	}
}

// TestHeadersThatAreWrong: a header that leads out of its raster or is none is refused with the name of the sample, and
// below roots a file that is no raster, whatever its header says. A field that says what the axes of its files are
// reads the files.
func TestHeadersThatAreWrong(t *testing.T) {
	dir := t.TempDir()
	set := newHeaded(t, dir)
	good := set.blobs[0]
	field := spec.Field{Name: "image", Column: "image.tif", Blob: "chaski:index"}
	asset := func(o resources.Options, path string, field spec.Field) (catalog.Asset, error) {
		made, err := table(t, spec.Spec{Source: path, Fields: []spec.Field{field}}, o)
		if err != nil {
			return catalog.Asset{}, err
		}
		return made.Fields[0].Asset(t.Context(), 0)
	}
	for _, header := range [][]byte{[]byte("no header"), blob.Append(nil, set.want[0].Index.Shift(1<<12))} {
		set.blobs[0] = header
		path := set.write(t, filepath.Join(t.TempDir(), "c.tacozip"), build.ZIP)
		if a, err := asset(options(t), path, field); fault.KindOf(err) != fault.Corrupt ||
			!strings.Contains(err.Error(), path+": sample s0/image.tif") {
			t.Errorf("%+v, %v", a, err)
		}
	}
	set.blobs[0] = good
	path := set.write(t, filepath.Join(dir, "c"), build.Folder)
	below := resources.Options{Roots: []string{dir}}.WithDefaults()
	if a, err := asset(below, path, field); err != nil || a.Size != 0 { // the file is not opened for more than this
		t.Errorf("%+v, %v", a, err)
	}
	paged := field
	paged.Pages = "bands"
	if a, err := asset(below, path, paged); err != nil || a.Size == 0 {
		t.Errorf("with axes: %+v, %v", a, err)
	}
	text := field
	text.Blob = "id"
	if _, err := asset(below, path, text); fault.KindOf(err) != fault.Unsupported ||
		!strings.Contains(err.Error(), `field "image" column id: holds values of type text, not blobs`) {
		t.Errorf("headers of text: %v", err)
	}
	testfile.Write(t, filepath.Join(path, "DATA", "s0", "image.tif"), []byte("a secret of somebody"))
	if a, err := asset(below, path, field); fault.KindOf(err) != fault.Unsupported ||
		!strings.Contains(err.Error(), "no raster file") {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestSensors: a collection whose sensor has none of the bands that it names is no reason for a run to fail, but for a
// description.
func TestSensors(t *testing.T) {
	set := &sampleTrees{samples: []build.Sample{bytesOf("a")},
		more: map[string]json.RawMessage{"optical_data": json.RawMessage(`{"sensor": "landsat8oli[B77]"}`)}}
	path := set.write(t, filepath.Join(t.TempDir(), "c.tacozip"), build.ZIP)
	made, err := table(t, spec.Spec{Source: path, Fields: []spec.Field{{Name: "id"}}}, options(t))
	if err != nil || made.BandNames() != nil {
		t.Errorf("%q, %v", made.BandNames(), err)
	}
	got, err := new(kind).Describe(t.Context(), path, options(t))
	if err == nil || !strings.Contains(err.Error(), "B77") {
		t.Errorf("%+v, %v", got, err)
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
