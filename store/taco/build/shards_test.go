package build_test

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tables"
)

// fileBytes returns the bytes of all files of a container by their paths.
func fileBytes(t *testing.T, uri string) map[string][]byte {
	t.Helper()
	ctx, files := context.Background(), &source.Files{}
	d, err := taco.Open(ctx, files, []string{uri}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	all := map[string][]byte{}
	for e, err := range d.Leaves(ctx, false) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := taco.Section(ctx, files, e)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, r.Size())
		if err := r.ReadAt(ctx, b, 0); err != nil {
			t.Fatal(err)
		}
		all[e.Path] = b
	}
	return all
}

const (
	mdsShards = "../../../testdata/shards/mds"
	wdsShards = "../../../testdata/shards/wds"
)

// TestExportKeepsHeaders: arrays of MDS shards, whose header as .npy files is not in the shard, are copied with it,
// also into parts.
func TestExportKeepsHeaders(t *testing.T) {
	ctx := context.Background()
	d, err := taco.Open(ctx, &source.Files{}, []string{mdsShards}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	want := fileBytes(t, mdsShards)
	for name, o := range map[string]build.Options{"all.tacozip": {}, "parts": {PartBytes: 3000}} {
		out := filepath.Join(t.TempDir(), name)
		if _, err := build.Export(ctx, d, nil, collection(), out, o); err != nil {
			t.Fatal(err)
		}
		got := fileBytes(t, out)
		for path, b := range want {
			if !bytes.Equal(got[path], b) {
				t.Errorf("%s: %s has %d bytes, want %d", name, path, len(got[path]), len(b))
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d files, want %d", name, len(got), len(want))
		}
	}
}

// valued returns three samples of files with columns of all kinds.
func valued() *build.Taco {
	of := func(k tables.Kind, bits uint8) tables.Type { return tables.Type{Kind: k, Bits: bits} }
	nulls := []bool{false, true, false}
	nan := math.NaN()
	names := []string{"int", "uint", "float", "half", "text", "gap", "nogap", "flag", "list", "time", "wkb", "x.bin",
		"split", "chaski:index", "json:cloud"}
	vectors := []*tables.Vector{
		tables.NewInts(of(tables.Int64, 64), []int64{-1, 1 << 60, 3}, nil),
		tables.NewInts(of(tables.Uint64, 64), []int64{1, -1, 3}, nil),
		tables.NewFloats(of(tables.Float64, 64), []float64{0.1, nan, math.Inf(-1)}, []bool{true, false, false}),
		tables.NewFloats(of(tables.Float64, 32), []float64{0.5, 1, 2}, nil),
		tables.NewStrings([]string{"", "é\"", "b\nc"}, nil),
		tables.NewInts(of(tables.Int64, 64), []int64{1, 2, 3}, nulls),
		tables.NewStrings([]string{"a", "b", "c"}, nulls),
		tables.NewInts(of(tables.Bool, 0), []int64{1, 0, 1}, nil),
		tables.NewList(tables.NewFloats(of(tables.Float64, 64), []float64{1, nan, 3}, nil), []uint32{0, 2, 2, 3},
			nil),
		tables.NewInts(of(tables.Timestamp, 0), []int64{0, 1e15, 2e15}, nil),
		tables.NewBytes(of(tables.Binary, 0), []byte("abc"), []uint32{0, 1, 1, 3}, nil),
		tables.NewInts(of(tables.Int64, 64), []int64{7, 8, 9}, nil),
		tables.NewStrings([]string{"val", "train", "val"}, nil),
		tables.NewStrings([]string{"1", "2", "3"}, nil),
		tables.NewInts(of(tables.Int64, 64), []int64{4, 5, 6}, nil),
	}
	t := &build.Tortilla{Columns: tables.FromVectors(names, vectors)}
	for i, id := range []string{"a.b", "ç", "c"} {
		t.Samples = append(t.Samples, build.Sample{ID: id, Children: &build.Tortilla{Samples: []build.Sample{
			{ID: "x.bin", Bytes: bytes.Repeat([]byte{byte(i)}, 300*i)},
			{ID: "sub", Children: &build.Tortilla{Samples: []build.Sample{{ID: "y", Bytes: []byte{byte(i), 1}}}}}}}})
	}
	return &build.Taco{Samples: t, Collection: build.Collection{}}
}

// valuesOf returns the columns of level 0, as JSON by sample and name.
func valuesOf(t *testing.T, uri string) map[string]string {
	t.Helper()
	d, err := taco.Open(t.Context(), &source.Files{}, []string{uri}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	table, err := d.Level(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	ids, err := table.Column(t.Context(), "id")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range table.Columns() {
		v, err := table.At(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		for row := range table.Len() {
			all[ids.Str(row)+" "+c.Name] = string(v.AppendJSON(nil, row))
		}
	}
	return all
}

// shardTree returns the files below a directory by their paths.
func shardTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		all[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// written writes valued in a form, with one worker and with several, and returns the folder.
func written(t *testing.T, form build.Form, s build.Shards) string {
	t.Helper()
	var first map[string]string
	for _, workers := range []int{1, 6} {
		out := filepath.Join(t.TempDir(), "out")
		r, err := build.Create(t.Context(), valued(), out, build.Options{Form: form, Workers: workers, Shards: s})
		if err != nil || r.Samples != 3 || r.Files != 6 || r.Bytes != 906 {
			t.Fatalf("%+v %v", r, err)
		}
		if got := shardTree(t, out); first != nil {
			if !maps.Equal(got, first) {
				t.Error("several workers write other bytes")
			}
			return out
		} else {
			first = got
		}
	}
	return ""
}

// TestShardsOfAllValues: shards have the bytes of all files and the values of all columns, those of MDS with the
// encodings of MosaicML Streaming.
func TestShardsOfAllValues(t *testing.T) {
	mds := written(t, build.MDS, build.Shards{Bytes: 1})
	got := valuesOf(t, mds)
	for name, want := range map[string]string{"a.b int": "-1", "ç int": "1152921504606846976", "a.b float": `"NaN"`,
		"c float": `"-Infinity"`, "c half": "2", "ç text": `"é\""`, "c text": `"b\nc"`, "ç gap": "null", "c gap": "3",
		"ç nogap": "null", "c nogap": `"c"`, "a.b flag": "true", "ç flag": "false", "a.b list": `"[1,null]"`,
		"ç list": `"[]"`, "c time": `"2033-05-18T03:33:20"`, "c source:x.bin": "9", "a.b split": `"val"`,
		"c cloud": "6", "c uint": "3", "c wkb": `"{\"hex\":\"6263\"}"`} {
		if got[name] != want {
			t.Errorf("MDS %s is %s, want %s", name, got[name], want)
		}
	}
	if files := fileBytes(t, mds); len(files) != 6 || len(files["c/x.bin"]) != 600 ||
		string(files["ç/sub.y"]) != "\x01\x01" {
		t.Errorf("%q", files)
	}
	tars := written(t, build.WebDataset, build.Shards{Bytes: 1})
	got = valuesOf(t, tars)
	for name, want := range map[string]string{"a_b json:id": `"a.b"`, "a_b json:int": "-1", "a_b json:float": "null",
		"ç json:text": `"é\""`, "ç json:gap": "null", "c json:nogap": `"c"`, "ç json:flag": "false",
		"c json:time": `"2033-05-18T03:33:20"`, "c json:wkb": `"{\"hex\":\"6263\"}"`, "c json:cloud": "6"} {
		if got[name] != want {
			t.Errorf("tar %s is %s, want %s", name, got[name], want)
		}
	}
	if files := fileBytes(t, tars); len(files) != 6 || len(files["c/x.bin"]) != 600 ||
		string(files["ç/sub.y"]) != "\x01\x01" {
		t.Errorf("%q", files)
	}
	for _, dir := range []string{mds, tars} {
		if n := len(shardTree(t, dir)); n < 3 {
			t.Errorf("%d shards of one byte at most", n)
		}
	}
}

// TestShardsBySplit: the samples of each value of the column split are a dataset of their own.
func TestShardsBySplit(t *testing.T) {
	for form, last := range map[build.Form]string{build.MDS: "index.json", build.WebDataset: "shard-000000.tar"} {
		out := written(t, form, build.Shards{BySplit: true})
		for split, samples := range map[string]int{"train": 1, "val": 2} {
			if n := len(fileBytes(t, filepath.Join(out, split))); n/samples*samples != n || n == 0 {
				t.Errorf("%s: %d files of %d samples", split, n, samples)
			}
			if _, err := os.Stat(filepath.Join(out, split, last)); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestShardsRefuse: what shards cannot hold is refused, and nothing is left.
func TestShardsRefuse(t *testing.T) {
	file := func(id string) build.Sample { return build.Sample{ID: id, Bytes: []byte(id)} }
	two := func(a, b string) *build.Tortilla { return &build.Tortilla{Samples: []build.Sample{file(a), file(b)}} }
	folder := func(t *build.Tortilla) *build.Tortilla {
		return &build.Tortilla{Samples: []build.Sample{{ID: "s", Children: t}}}
	}
	split, twice := two("a", "b"), two("a.b", "a")
	twice.Samples[1] = build.Sample{ID: "a", Children: two("b", "c")}
	split.Columns = tables.FromVectors([]string{"split"}, []*tables.Vector{tables.NewStrings([]string{"..", "x"}, nil)})
	for name, c := range map[string]struct {
		t    *build.Tortilla
		form build.Form
		s    build.Shards
		want string
	}{
		"two keys":   {two("a.b", "a_b"), build.WebDataset, build.Shards{}, `its key is "a_b", as that of "a.b"`},
		"member":     {folder(two("x", "json")), build.WebDataset, build.Shards{}, `the member "json"`},
		"case":       {folder(two("x.B", "x.b")), build.WebDataset, build.Shards{}, `the member "x.b"`},
		"two files":  {folder(twice), build.MDS, build.Shards{}, `"a.b"`},
		"ids":        {folder(two("id", "x")), build.MDS, build.Shards{}, `"id"`},
		"no split":   {two("a", "b"), build.MDS, build.Shards{BySplit: true}, "column split"},
		"bad split":  {split, build.MDS, build.Shards{BySplit: true}, `".."`},
		"large":      {two("a", "b"), build.MDS, build.Shards{Bytes: 1 << 32}, "4 GiB"},
		"no samples": {&build.Tortilla{}, build.MDS, build.Shards{}, "no samples"},
	} {
		dir := t.TempDir()
		_, err := build.Create(t.Context(), &build.Taco{Samples: c.t}, filepath.Join(dir, "out"),
			build.Options{Form: c.form, Shards: c.s})
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.KindOf(err) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: leaves %v", name, left)
		}
	}
}
