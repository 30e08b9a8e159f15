package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
)

// describedAs is a COLLECTION.json.
const describedAs = `{"id": "m", "dataset_version": "1", "description": "M", "licenses": ["MIT"],
	"providers": [{"name": "A"}], "tasks": ["other"]}`

// TestPackIntoStore: a container in a store has the bytes of a local one, also if the store refuses every third request
// for a while; a failure leaves the old object, and no run leaves a temporary file.
func TestPackIntoStore(t *testing.T) {
	store := fakes3.Start(t, "bucket")
	t.Setenv("AWS_ENDPOINT_URL", store.URL)
	dir, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	coast := testdata(t, "coast", "coast.tacozip")
	ok := func(args ...string) {
		t.Helper()
		if r := chaski(t.Context(), args...); r.code != 0 {
			t.Fatalf("%q: exit %d: %s", args, r.code, r.err)
		}
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if r := chaski(t.Context(), args...); r.code == 0 || !strings.Contains(r.err, want) {
			t.Errorf("%q: exit %d: %s", args, r.code, r.err)
		}
	}
	same := func(key, local string) {
		t.Helper()
		back := filepath.Join(dir, "back.tacozip")
		ok("pack", "-o", back, "s3://bucket/"+key)
		ok("verify", "s3://bucket/"+key)
		want := filepath.Join(dir, "want.tacozip")
		ok("pack", "-o", want, local)
		got, err := os.ReadFile(back)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(want); err != nil || string(b) != string(got) {
			t.Errorf("%s: %d bytes, want %d: %v", key, len(got), len(b), err)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left: %v %v", left, err)
		}
	}
	store.Answer(func(w http.ResponseWriter, r *http.Request, n int64) bool {
		if r.Method == http.MethodPut && n%3 != 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	ok("pack", "-o", "s3://bucket/set/all.tacozip", coast)
	store.Answer(nil)
	same("set/all.tacozip", coast)

	few := filepath.Join(dir, "few.tacozip")
	ok("pack", "-o", few, "--limit", "3", coast)
	store.Answer(func(w http.ResponseWriter, r *http.Request, _ int64) bool {
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusForbidden)
		}
		return r.Method == http.MethodPut
	})
	refused("s3://bucket/set/all.tacozip: object: ", "pack", "-o", "s3://bucket/set/all.tacozip", few)
	store.Answer(nil)
	same("set/all.tacozip", coast)
	ok("pack", "-o", "s3://bucket/set/all.tacozip", few)
	same("set/all.tacozip", few)

	// Of a file beyond 16 MiB, parts are uploaded.
	big := filepath.Join(dir, "big.csv")
	if err := os.WriteFile(filepath.Join(dir, "big.bin"), make([]byte, 17<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(big, []byte("id,path\na,big.bin\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	about := filepath.Join(dir, "about.json")
	if err := os.WriteFile(about, []byte(describedAs), 0o666); err != nil {
		t.Fatal(err)
	}
	var parts atomic.Int64
	store.Answer(func(_ http.ResponseWriter, r *http.Request, _ int64) bool {
		if r.Method == http.MethodPut && r.URL.Query().Has("partNumber") {
			parts.Add(1)
		}
		return false
	})
	ok("pack", "-o", "s3://bucket/big.tacozip", "--collection", about, big)
	store.Answer(nil)
	if parts.Load() != 2 {
		t.Errorf("%d parts", parts.Load())
	}
	same("big.tacozip", "s3://bucket/big.tacozip")

	refused("not found", "pack", "-o", "s3://none/all.tacozip", few)
	refused("is one file", "pack", "-o", "s3://bucket/folder", few)
	refused("is one file", "pack", "-o", "s3://bucket/shards", "--form", "mds", few)
	refused("is one file", "pack", "-o", "s3://bucket/parts", "--form", "tortilla", "--part-count", "2", few)
	refused("has no name", "pack", "-o", "s3://bucket/x/", "--form", "zip", few)
	refused("--resume needs a local OUT", "make", "--resume", "-o", "s3://bucket/x.tacozip", "none.yaml")

	recipe := filepath.Join(dir, "r.yaml")
	text := `{"collection": ` + describedAs + `, "source": "few.tacozip",
		 "fields": [{"name": "image", "column": "s2/img.tif"}]}`
	if err := os.WriteFile(recipe, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	ok("make", "-o", filepath.Join(dir, "made.tacozip"), recipe)
	ok("make", "-o", "s3://bucket/made.tacozip", recipe)
	same("made.tacozip", filepath.Join(dir, "made.tacozip"))
}
