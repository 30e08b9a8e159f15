package formats_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// array is an array of bytes in one chunk a position of the leading dimensions.
type array struct {
	path  string
	dims  string
	shape []int
	attrs string // the members of its attributes
	cells []byte
}

// write writes a group of format 3, with attributes of its groups by path: "" is the group itself.
func write(t *testing.T, dir string, arrays []array, attrs map[string]string) {
	t.Helper()
	put := func(name string, content []byte) {
		testfile.Write(t, name, content)
	}
	for path, text := range attrs {
		put(filepath.Join(dir, path, "zarr.json"),
			fmt.Appendf(nil, `{"zarr_format":3,"node_type":"group","attributes":{%s}}`, text))
	}
	for _, a := range arrays {
		chunks, size := slices.Clone(a.shape), 1
		for d := range chunks {
			if d < len(chunks)-2 {
				chunks[d] = 1
			}
			size *= chunks[d]
		}
		list := func(v []int) string { return strings.Join(strings.Fields(fmt.Sprint(v)), ",") }
		put(filepath.Join(dir, a.path, "zarr.json"), fmt.Appendf(nil, `{"zarr_format":3,"node_type":"array",`+
			`"shape":%s,"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":%s}},`+
			`"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":["bytes"],"dimension_names":["%s"],`+
			`"attributes":{%s}}`, list(a.shape), list(chunks), strings.ReplaceAll(a.dims, " ", `","`), a.attrs))
		for i := range len(a.cells) / size {
			name := filepath.Join(dir, a.path, "c")
			for range len(a.shape) - 3 {
				name = filepath.Join(name, "0")
			}
			if len(a.shape) > 2 {
				name = filepath.Join(name, fmt.Sprint(i))
			}
			for range min(len(a.shape), 2) {
				name = filepath.Join(name, "0")
			}
			put(name, a.cells[i*size:][:size])
		}
	}
}

// options are options with their defaults.
var options = resources.Options{}.WithDefaults()

// open opens a dataset with fields "name" or "name=pattern".
func open(t *testing.T, dir string, fields ...string) (*rows.Table, error) {
	t.Helper()
	var list []spec.Field
	for _, f := range fields {
		name, pattern, _ := strings.Cut(f, "=")
		field := spec.Field{Name: name, Pattern: pattern}
		if strings.HasPrefix(name, "@") {
			field.Name, field.Kind = name[1:], spec.NumberField
		}
		list = append(list, field)
	}
	return rows.Open(t.Context(), spec.Source{Source: dir}, list, options)
}

// TestDescribe: the description has what the metadata says of each array, and says of an array that cannot be read why.
func TestDescribe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a.zarr")
	write(t, dir, []array{
		{path: "image", dims: "time y x", shape: []int{3, 4, 5},
			attrs: `"units":"K","scale_factor":0.5,"add_offset":-7,"_FillValue":9`},
		{path: "label", dims: "time", shape: []int{3}, attrs: `"scale_factor":"x"`},
	}, map[string]string{"": ""})
	if err := os.MkdirAll(filepath.Join(dir, "odd"), 0o755); err != nil {
		t.Fatal(err)
	}
	odd := `{"zarr_format":3,"node_type":"array","shape":[2],"data_type":"uint3"}`
	testfile.Write(t, filepath.Join(dir, "odd", "zarr.json"), []byte(odd))
	described, err := survey.Describe(t.Context(), dir, nil, resources.Options{})
	if err != nil {
		t.Fatal(err)
	}
	info, ok := described.(*arrays.Info)
	if !ok || info.Kind != "zarr" || info.Format != 3 || !info.Group || len(info.Arrays) != 3 {
		t.Fatalf("%+v, %v", info, err)
	}
	byPath := map[string]arrays.Described{}
	for _, a := range info.Arrays {
		byPath[a.Path] = a
	}
	image, label := byPath["image"], byPath["label"]
	if !reflect.DeepEqual(image.Shape, []int64{3, 4, 5}) || !reflect.DeepEqual(image.Chunks, []int64{1, 4, 5}) ||
		image.DType != "uint8" || !reflect.DeepEqual(image.Dims, []string{"time", "y", "x"}) || image.Unit != "K" {
		t.Errorf("image: %+v", image)
	}
	if image.Scale == nil || *image.Scale != 0.5 || image.Offset == nil || *image.Offset != -7 || image.NoData == nil ||
		*image.NoData != 9 {
		t.Errorf("image: scale %v, offset %v, nodata %v", image.Scale, image.Offset, image.NoData)
	}
	if label.Axes != nil || label.Scale != nil || !reflect.DeepEqual(label.Shape, []int64{3}) {
		t.Errorf("label: %+v", label)
	}
	if byPath["odd"].Unreadable == "" {
		t.Errorf("odd: %+v", byPath["odd"])
	}
	if _, err := survey.Describe(t.Context(), dir+"x", nil, resources.Options{}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

// TestGrouped: the rows are what the patterns stand for, in the order of their keys; attributes come from the array or
// the nearest group above it.
func TestGrouped(t *testing.T) {
	dir, random := filepath.Join(t.TempDir(), "a.zarr"), rand.New(rand.NewPCG(1, 2))
	attrs := map[string]string{"": "", "all": `"cloud":99,"site":"all"`}
	var all []array
	var want []int64
	for i := range 7 {
		group, cloud := fmt.Sprint("all/s", i), random.Int64N(90)
		attrs[group] = ""
		if i%3 == 0 {
			cloud = 99 // of the group of all
		} else {
			attrs[group] = fmt.Sprintf(`"cloud":%d`, cloud)
		}
		want = append(want, cloud)
		for _, name := range []string{"image", "mask"} {
			all = append(all, array{path: group + "/" + name, dims: "y x", shape: []int{4, 5},
				cells: make([]byte, 20)})
		}
	}
	write(t, dir, all, attrs)
	table, err := open(t, dir, "image=all/{id}/image", "mask=all/{id}/mask", "@cloud")
	if err != nil {
		t.Fatal(err)
	}
	if table.N != 7 {
		t.Fatalf("%d rows", table.N)
	}
	for row := range table.N {
		id, err := table.ID(t.Context(), row)
		if err != nil || id != fmt.Sprint("s", row) {
			t.Errorf("row %d is %q, %v", row, id, err)
		}
		for f, name := range []string{"image", "mask"} {
			asset, err := table.Fields[f].Asset(t.Context(), row)
			if err != nil || !strings.HasSuffix(asset.URI, id+"/"+name) || asset.Index.Height != 4 ||
				asset.Index.Width != 5 {
				t.Errorf("row %d, %s: %q, %v", row, name, asset.URI, err)
			}
		}
		if v, err := table.Fields[2].Value(t.Context(), row); err != nil || v.Int != want[row] || v.Null {
			t.Errorf("row %d: cloud %+v, %v; want %d", row, v, err, want[row])
		}
	}
	site, err := table.Column(t.Context(), "site")
	if err != nil || site.Kind != catalog.Text {
		t.Fatalf("site: %v, %v", site.Kind, err)
	}
	err = site.Scan(t.Context(), func(row int64, v catalog.Value) error {
		if string(v.Text) != "all" {
			return fmt.Errorf("row %d: %q", row, v.Text)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := table.Column(t.Context(), "sun"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an attribute that no group has: %v", err)
	}
	// Other chunks are the same dataset, another shape is another one.
	first := table.Fingerprint
	all[0].cells = []byte(strings.Repeat("x", 20))
	write(t, dir, all, attrs)
	same, err := open(t, dir, "image=all/{id}/image", "mask=all/{id}/mask", "@cloud")
	if err != nil || same.Fingerprint != first {
		t.Errorf("other pixels: %q, %v, want %q", same.Fingerprint, err, first)
	}
	all[2].shape, all[2].cells = []int{4, 6}, nil
	write(t, dir, all, attrs)
	other, err := open(t, dir, "image=all/{id}/image", "mask=all/{id}/mask", "@cloud")
	if err != nil || other.Fingerprint == first {
		t.Errorf("another shape: %v", err)
	}
	// Numbers and strings are no column.
	attrs["all/s1"] = `"cloud":"many"`
	write(t, dir, nil, attrs)
	if _, err := open(t, dir, "image=all/{id}/image", "@cloud"); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("numbers and strings: %v", err)
	}
	if _, err := open(t, dir, "image=../all/{id}/image"); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a pattern outside of the group: %v", err)
	}
}

// TestImagesAlongN: an array of images is one row an image, labels are its values along n, and fields have as many.
func TestImagesAlongN(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a.zarr")
	arrays := []array{
		{path: "image", dims: "n y x", shape: []int{5, 2, 3}, cells: []byte(strings.Repeat("x", 30))},
		{path: "class", dims: "n", shape: []int{5}, cells: []byte{3, 1, 4, 1, 5}},
		{path: "few", dims: "n y x", shape: []int{4, 2, 3}},
	}
	write(t, dir, arrays, map[string]string{"": ""})
	table, err := open(t, dir, "image", "@class")
	if err != nil {
		t.Fatal(err)
	}
	if table.N != 5 || !table.Array {
		t.Errorf("%d rows, array %v", table.N, table.Array)
	}
	for row, want := range arrays[1].cells {
		v, err := table.Fields[1].Value(t.Context(), int64(row))
		if err != nil || v.Int != int64(want) {
			t.Errorf("row %d: %+v, %v; want %d", row, v, err, want)
		}
	}
	if _, err := open(t, dir, "image", "few"); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("five images and four: %v", err)
	}
	source := spec.Source{Source: dir, Timestamp: &spec.Timestamp{}}
	_, err = rows.Open(t.Context(), source, []spec.Field{{Name: "image"}}, options)
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("an earlier state: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	class, err := table.Column(t.Context(), "class")
	if err != nil {
		t.Fatal(err)
	}
	if err := class.Scan(cancelled, func(int64, catalog.Value) error { return nil }); err == nil {
		t.Error("a scan goes on after its context has ended")
	}
}
