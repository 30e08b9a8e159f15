package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackShards: shards are copied into a container.
func TestPackShards(t *testing.T) {
	dir, mds := t.TempDir(), testdata(t, "shards", "mds")
	run := func(code int, want string, args ...string) {
		t.Helper()
		r := chaski(t.Context(), args...)
		if r.code != code || !strings.Contains(r.err+r.out, want) {
			t.Errorf("%q: exit %d, %s%s", args, r.code, r.out, r.err)
		}
	}
	folder := filepath.Join(dir, "folder")
	about := filepath.Join(t.TempDir(), "about.json")
	write(t, about, []byte(`{"id": "x", "dataset_version": "1", "description": "x", "licenses": ["MIT"], `+
		`"providers": [{"name": "x"}], "tasks": ["other"]}`))
	run(0, "7 samples", "pack", "-o", folder, "--collection", about, mds)
	run(0, `"faulty":0`, "verify", folder)
	want := chaski(t.Context(), "extract", mds+"::0/array")
	if r := chaski(t.Context(), "extract", folder+"::0/array"); r.code != 0 || r.out != want.out || want.out == "" {
		t.Errorf("%d bytes, want %d: %s", len(r.out), len(want.out), r.err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v", left, err)
	}
	run(2, "--form", "pack", "-o", folder, "--form", "mds", mds)
}
