package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestTwoKindsAtOnce: every command that opens a path refuses a directory that is two stores at once with the same
// words, so that none of them reads other pixels than training does.
func TestTwoKindsAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "both")
	if err := os.CopyFS(dir, os.DirFS(testdata(t, "tiledb", "arrays", "dense_2d_order_rc"))); err != nil {
		t.Fatal(err)
	}
	group := []byte(`{"zarr_format": 3, "node_type": "group", "attributes": {}}`)
	testfile.Write(t, filepath.Join(dir, "zarr.json"), group)
	refusedByAll(t, dir, "is a TileDB array and a Zarr array or group at once")
}

// TestIcechunk: every command that opens a path says that it is an Icechunk store. Its files are those that the package
// icechunk 2.3.0 makes.
func TestIcechunk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for _, name := range []string{"repo", "snapshots/1CECHNKREP0F1RSTCMT0", "transactions/1CECHNKREP0F1RSTCMT0",
		"overwritten/repo.30707905980644.7WG9P0QWAGW2DEKGPXA0", "manifests/9FRXWV7GKZRZCKPCDN8G"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		testfile.Write(t, path, []byte("ICE🧊CHUNK"))
	}
	refusedByAll(t, dir, "is an Icechunk store, which is not read: copy it to Zarr")
}

// refusedByAll holds the commands that open a directory to one error.
func refusedByAll(t *testing.T, dir, want string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{
		{"info", dir}, {"verify", dir}, {"verify", filepath.Dir(dir)}, {"cat", dir}, {"ls", dir},
		{"bench", "load", dir}, {"stats", dir}, {"plan", dir},
		{"convert", dir, "-o", out}, {"pack", dir, "-o", out + ".tacozip"}, {"index", dir, "-o", out + ".parquet"},
	} {
		r := chaski(t.Context(), args...)
		if r.code != 1 || !strings.Contains(r.err+r.out, want) {
			t.Errorf("%s: got exit %d and %q; want exit 1 and %q", strings.Join(args, " "), r.code, r.err, want)
		}
	}
}

// TestItemsAreNoSpec: a command that takes a spec or a dataset takes STAC items for a dataset.
func TestItemsAreNoSpec(t *testing.T) {
	path := filepath.Join(t.TempDir(), "items.json")
	chip := testdata(t, "extras", "points.tif")
	items := `{"features": [{"type": "Feature", "id": "a", "properties": {}, "assets": {"image": {"href": "` + chip +
		`"}}}], "type": "FeatureCollection"}`
	testfile.Write(t, path, []byte(items))
	if r := chaski(t.Context(), "stats", "--field", "image", path); r.code != 0 || !strings.Contains(r.out, "mean") {
		t.Errorf("got exit %d, %q and %q; want statistics", r.code, r.out, r.err)
	}
}
