package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestPackShards: shards that are compressed are refused where samples are read one by one, and copied decompressed.
func TestPackShards(t *testing.T) {
	dir, mds := t.TempDir(), testdata(t, "shards", "mds")
	zipped := filepath.Join(dir, "zipped")
	if err := os.CopyFS(zipped, os.DirFS(mds)); err != nil {
		t.Fatal(err)
	}
	compress(t, zipped)
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
	run(1, "compressed as a whole", "ls", zipped)
	run(0, "7 samples", "pack", "-o", folder, "--collection", about, zipped)
	run(0, `"faulty":0`, "verify", folder)
	want := chaski(t.Context(), "extract", mds+"::0/array")
	if r := chaski(t.Context(), "extract", folder+"::0/array"); r.code != 0 || r.out != want.out || want.out == "" {
		t.Errorf("%d bytes, want %d: %s", len(r.out), len(want.out), r.err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v is left, %v", left, err)
	}
	run(2, "--form", "pack", "-o", folder, "--form", "mds", mds)
}

// compress compresses the shards of a directory as a whole.
func compress(t *testing.T, dir string) {
	t.Helper()
	index := filepath.Join(dir, "index.json")
	text, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Version int              `json:"version"`
		Shards  []map[string]any `json:"shards"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	w, _ := zstd.NewWriter(nil)
	for _, s := range doc.Shards {
		name := s["raw_data"].(map[string]any)["basename"].(string)
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		b := w.EncodeAll(raw, nil)
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, name+".zstd")); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name+".zstd"), b)
		s["compression"] = "zstd:3"
		s["zip_data"] = map[string]any{"basename": name + ".zstd", "bytes": len(b), "hashes": map[string]string{}}
	}
	if text, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	write(t, index, text)
}
