package cli

import (
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
	"github.com/chaski-eo/chaski/tools/testkit/race"
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
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	bigLocal := filepath.Join(dir, "big.tacozip")
	ok("pack", "-o", bigLocal, "--collection", about, big)
	same("big.tacozip", bigLocal)
	want, err := os.ReadFile(bigLocal)
	if got := objectsOf(t, store, "big.tacozip")[""]; err != nil || got != string(want) {
		t.Errorf("big.tacozip: %d bytes, want %d: %v", len(got), len(want), err)
	}
	ok("pack", "-o", "s3://bucket/big", "--collection", about, big)
	if got := objectsOf(t, store, "big/")["DATA/a"]; got != string(make([]byte, 17<<20)) {
		t.Errorf("big/DATA/a: %d bytes", len(got))
	}

	refused("not found", "pack", "-o", "s3://none/all.tacozip", few)
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

// objectsOf returns the objects below a prefix by what follows it.
func objectsOf(t *testing.T, store *fakes3.Store, prefix string) map[string]string {
	t.Helper()
	keys, err := store.Keys(prefix)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, key := range keys {
		b, err := store.Get(key)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimPrefix(key, prefix)] = string(b)
	}
	return out
}

// filesBelow returns the files below a folder by their paths in it.
func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPackFormsIntoStore: a container of every form has the objects in a store that it has as local files, byte for
// byte, made by pack and by make. A folder needs a new name.
func TestPackFormsIntoStore(t *testing.T) {
	race.SkipCovered(t)
	store := fakes3.Start(t, "bucket")
	t.Setenv("AWS_ENDPOINT_URL", store.URL)
	dir, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	coast := testdata(t, "coast", "coast.tacozip")
	recipe := filepath.Join(dir, "r.yaml")
	text := `{"collection": ` + describedAs + `, "source": "` + coast + `", "columns": ["*"],
		 "split": {"by": "hash", "shares": {"a": 0.5, "b": 0.5}}, "fields": [{"name": "image", "column": "s2/img.tif"}]}`
	if err := os.WriteFile(recipe, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{
		"all.tacozip":  nil,
		"folder":       nil,
		"parts":        {"--part-size", "40KB"},
		"all.tortilla": nil,
		"tortillas":    {"--form", "tortilla", "--part-size", "40KB"},
	} {
		for _, command := range [][]string{{"pack", coast}, {"make", recipe}} {
			if command[0] == "make" && (name == "tortillas" || testing.Short() && name != "parts") {
				continue
			}
			local, remote := filepath.Join(dir, command[0], name), "s3://bucket/"+command[0]+"/"+name
			if err := os.MkdirAll(filepath.Dir(local), 0o777); err != nil {
				t.Fatal(err)
			}
			for _, out := range []string{local, remote} {
				args := append([]string{command[0], "-o", out}, append(flags, command[1])...)
				if r := chaski(t.Context(), args...); r.code != 0 {
					t.Fatalf("%q: exit %d: %s", args, r.code, r.err)
				}
			}
			got := objectsOf(t, store, command[0]+"/"+name)
			want := map[string]string{}
			if st, err := os.Stat(local); err == nil && st.IsDir() {
				for file, b := range filesBelow(t, local) {
					want["/"+file] = b
				}
			} else if b, err := os.ReadFile(local); err == nil {
				want[""] = string(b)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s: objects %v, want %v", command[0], name, slices.Sorted(maps.Keys(got)),
					slices.Sorted(maps.Keys(want)))
			}
			if name == "folder" || name == "parts" {
				args := append([]string{command[0], "-o", remote}, append(flags, command[1])...)
				if r := chaski(t.Context(), args...); r.code == 0 || !strings.Contains(r.err, "exists") {
					t.Errorf("%q again: exit %d: %s", args, r.code, r.err)
				}
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("%s %s: left %v %v", command[0], name, left, err)
			}
		}
	}
	for _, name := range []string{"__TACOCAT__", "TACOLLECTION.json"} {
		local, remote := filepath.Join(dir, "pack", "parts", name), "s3://bucket/pack/parts/"+name
		for _, args := range [][]string{{"pack", "-o", local, filepath.Dir(local)},
			{"pack", "-o", remote, "s3://bucket/pack/parts/"}} {
			if r := chaski(t.Context(), args...); r.code != 0 {
				t.Fatalf("%q: exit %d: %s", args, r.code, r.err)
			}
		}
		want, err := os.ReadFile(local)
		if got := objectsOf(t, store, "pack/parts/"+name)[""]; err != nil || got != string(want) {
			t.Errorf("%s: %d bytes, want %d: %v", name, len(got), len(want), err)
		}
	}
	for _, name := range []string{"folder", "parts/.tacocat", "parts/__TACOCAT__"} {
		var verified, listed []string
		for _, root := range []string{filepath.Join(dir, "pack"), "s3://bucket/pack"} {
			r := chaski(t.Context(), "verify", root+"/"+name)
			if r.code != 0 {
				t.Errorf("verify %s/%s: exit %d: %s", root, name, r.code, r.err)
			}
			verified = append(verified, r.out)
			r = chaski(t.Context(), "ls", root+"/"+name)
			if r.code != 0 || r.out == "" {
				t.Fatalf("ls %s/%s: exit %d: %s", root, name, r.code, r.err)
			}
			vsi := strings.Replace(root, "s3://", "/vsis3/", 1)
			listed = append(listed, strings.ReplaceAll(strings.ReplaceAll(r.out, root, ""), vsi, ""))
		}
		if verified[0] != verified[1] {
			t.Errorf("%s: verify says\n%s, not\n%s", name, verified[1], verified[0])
		}
		if listed[0] != listed[1] {
			t.Errorf("%s: its samples are\n%s, not\n%s", name, listed[1], listed[0])
		}
	}
}
