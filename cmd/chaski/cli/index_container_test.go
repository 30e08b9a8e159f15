package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// tensorsOf returns the tensors of the images and masks of a dataset of testdata/coast, by the
// fields' names.
func tensorsOf(t *testing.T, src string, fields []loader.Field) map[string][]byte {
	t.Helper()
	files := open.NewOpener(true, nil, false)
	defer files.Close()
	e, err := loader.Open(t.Context(), loader.Spec{Source: src, BatchSize: 5, Fields: fields},
		loader.Options{Opener: files})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	l, err := loader.NewLoader(e, loader.LoaderOptions{Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	all := map[string][]byte{}
	for b, err := range l.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			all[f.Name] = append(all[f.Name], b.Tensor(f.Name).Data...)
		}
	}
	return all
}

// TestCatalogOfAContainer: a catalog of a container's rasters, on disk and in a bucket, gives the
// batches of the container, can be verified and resumed, and refuses a container that was
// rewritten.
func TestCatalogOfAContainer(t *testing.T) {
	b := testfile.Read(t, testdata(t, "coast", "coast.tacozip"))
	_, store, bases := remotes(t, map[string][]byte{"coast.tacozip": b})
	dir := t.TempDir()
	local := filepath.Join(dir, "coast.tacozip")
	testfile.Write(t, local, b)
	want := tensorsOf(t, local, []loader.Field{
		{Name: "image", Column: "s2/img.tif"},
		{Name: "mask", Column: "ref/label.tif"},
	})
	out := filepath.Join(dir, "members.parquet")
	for _, src := range []string{local, bases[0] + "coast.tacozip", bases[1] + "coast.tacozip"} {
		_ = os.Remove(out)
		if r := chaski(t.Context(), "index", "--format", "parquet", "-o", out, src); r.code != 0 {
			t.Fatalf("%+v", r)
		}
		name := strings.TrimPrefix(src, dir+"/")
		pattern := name + "::{id}/"
		if i := strings.LastIndex(name, "/"); i >= 0 { // of an absolute URI, what follows the folder that all share
			pattern = name[i+1:] + "::{id}/"
		}
		got := tensorsOf(t, out, []loader.Field{
			{Name: "image", Pattern: pattern + "s2/img.tif"},
			{Name: "mask", Pattern: pattern + "ref/label.tif"},
		})
		for f := range want {
			if len(want[f]) == 0 || !bytes.Equal(got[f], want[f]) {
				t.Errorf("%s of %s: %d bytes, want %d", f, src, len(got[f]), len(want[f]))
			}
		}
		r := chaski(t.Context(), "verify", out)
		var sum struct{ Files, Rows, Chunks, Faulty int }
		err := json.Unmarshal([]byte(r.out), &sum)
		if err != nil || r.code != 0 || sum.Rows != 24 || sum.Files != 25 || sum.Chunks == 0 || sum.Faulty != 0 {
			t.Errorf("verify %s: %+v", src, r)
		}
		before := store.Requests()
		if r := chaski(t.Context(), "index", "--format", "parquet", "--resume", "-o", out, src); r.code != 0 {
			t.Errorf("%+v", r)
		}
		if n := store.Requests() - before; n > 2+3 {
			t.Errorf("indexed %s again by %d requests, want those of its tables", src, n)
		}
	}
	other := bytes.Clone(b)
	at := bytes.Index(other, []byte("ref/label.tif")) + 200
	other[at] ^= 0xFF
	if err := store.Put("data/coast.tacozip", other); err != nil {
		t.Fatal(err)
	}
	load := []string{
		"bench", "load", "--batch", "4", "--rounds", "1", "--seconds",
		"0.01", "--field", "image=coast.tacozip::{id}/s2/img.tif", out,
	}
	if r := chaski(t.Context(), load...); r.code != 1 || !strings.Contains(r.err, "another one now") {
		t.Errorf("a container that changed under its catalog: %+v", r)
	}
	r := chaski(t.Context(), "index", "--format", "parquet",
		testdata(t, "containers", "tortilla", "flat_bytes.tortilla"))
	if r.code != 1 {
		t.Errorf("samples that are no rasters: %+v", r)
	}
}

// TestVerifyTakesASetOfParts: a split Tortilla has the name of the whole, and is not found if its
// parts are missing.
func TestVerifyTakesASetOfParts(t *testing.T) {
	b := testfile.Read(t, testdata(t, "containers", "tortilla", "flat_bytes.tortilla"))
	dir := t.TempDir()
	testfile.Write(t, filepath.Join(dir, "data.0000.part.tortilla"), b)
	whole := chaski(t.Context(), "verify", testdata(t, "containers", "tortilla", "flat_bytes.tortilla"))
	if r := chaski(t.Context(), "verify", filepath.Join(dir, "data.tortilla")); r.code != 0 || r.out != whole.out {
		t.Errorf("%+v, want %+v", r, whole)
	}
	r := chaski(t.Context(), "verify", filepath.Join(dir, "other.tortilla"))
	if r.code != 1 || !strings.HasSuffix(r.err, "not found\n") {
		t.Errorf("%+v", r)
	}
}
