package build_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
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
