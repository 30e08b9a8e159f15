package recipe_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// TestShardsOfARecipe: shards have the pixels of the scenes, for any number of workers, also after an interrupted run.
func TestShardsOfARecipe(t *testing.T) {
	dir := scenes(t, 2)
	text := "source: img\nwindows: {kind: grid, size: 20}\nfields: [{name: rgb, codec: {level: 3}}]\n" +
		"split: {by: hash, shares: {train: 1, val: 1}}\n"
	r, err := recipe.Parse([]byte(head + text))
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []build.Form{build.MDS, build.WebDataset} {
		output := recipe.Output{Form: form, Shards: build.Shards{Bytes: 20000, Array: columns.Array}}
		var first map[string][]byte
		for _, workers := range []int{1, 5} {
			out := filepath.Join(t.TempDir(), "out")
			o := recipe.Options{Base: dir, Output: output, Loader: loader.Options{Workers: workers}}
			if workers == 5 {
				interrupted(t, dir, text, out, 30, output)
				o.Resume, o.Shard = true, 5
			}
			res, err := recipe.Make(t.Context(), r, out, o)
			if err != nil || res.Samples != 50 || res.Files != 50 {
				t.Fatalf("%+v %v", res, err)
			}
			if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) != 1 {
				t.Errorf("%v is left, %v", left, err)
			}
			if first == nil {
				first = tree(t, out)
				shardsHave(t, out, map[build.Form]string{build.MDS: "/rgb", build.WebDataset: "/rgb.npy"}[form])
			} else if !sameTree(tree(t, out), first) {
				t.Error("other bytes")
			}
		}
		if len(first) < 4 {
			t.Errorf("%d files", len(first))
		}
	}
}

// shardsHave compares two arrays with the pixels of scene 1.
func shardsHave(t *testing.T, path, name string) {
	t.Helper()
	ctx, files := context.Background(), &source.Files{}
	d, err := taco.Open(ctx, files, []string{path}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, y0 := range []int{0, 40} {
		id := map[int]string{0: "s1_y0_x60", 40: "s1_y40_x60"}[y0]
		e, err := d.Resolve(ctx, id+name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := taco.Section(ctx, files, e)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, s.Size())
		if err := s.ReadAt(ctx, b, 0); err != nil {
			t.Fatal(err)
		}
		b = b[len(b)-2*3*20*20:]
		for i := range 3 * 20 * 20 {
			band, y, x := i/400, i/20%20, i%20
			if got, want := binary.LittleEndian.Uint16(b[2*i:]), pixel(1, band, y0+y, 60+x); got != want {
				t.Fatalf("%s band %d row %d column %d: %d, want %d", id, band, y, x, got, want)
			}
		}
	}
}
