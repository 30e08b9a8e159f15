package cli

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// The child of TestKillsInStore runs the command in this variable, whose arguments end in newlines.
const killedInStore = "CHASKI_TEST_KILLED_IN_STORE"

// TestKillsInStore: a process that writes into a store is killed as it makes each of its requests, or a few of them for
// a folder. An object is the old one or the new one, a folder is a container only when it is complete, and the next run
// writes what a local one does and leaves no upload.
func TestKillsInStore(t *testing.T) {
	race.SkipCovered(t)
	if args := os.Getenv(killedInStore); args != "" {
		chaski(t.Context(), strings.Split(args, "\n")...)
		return
	}
	store := fakes3.Start(t, "bucket")
	t.Setenv("AWS_ENDPOINT_URL", store.URL)
	dir := t.TempDir()
	text := "id,path\n"
	for _, name := range []string{"a", "b", "c"} {
		text += name + "," + name + ".bin\n"
		size := 10
		if name == "b" {
			size = 17 << 20 // more than a part
		}
		b := bytes.Repeat([]byte("a chip of the coast"), size/19+1)
		if err := os.WriteFile(filepath.Join(dir, name+".bin"), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	table, about := filepath.Join(dir, "few.csv"), filepath.Join(dir, "about.json")
	for name, b := range map[string]string{table: text, about: describedAs} {
		if err := os.WriteFile(name, []byte(b), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"few.tacozip", "folder"} {
		out := "s3://bucket/" + name
		args := []string{"pack", "--quiet", "--collection", about, "-o", out, table}
		local := slices.Clone(args)
		local[5] = filepath.Join(dir, name)
		if r := chaski(t.Context(), local...); r.code != 0 {
			t.Fatal(r.err)
		}
		want := map[string]string{}
		for file, b := range filesBelow(t, local[5]) {
			want[strings.TrimSuffix("/"+file, "/.")] = b
		}
		step := int64(1)
		if testing.Short() {
			step = 9 // each child takes a second under the race detector
		}
		for nth := int64(1); ; nth += step {
			for key := range objectsOf(t, store, name) {
				store.Delete(t, name+key)
			}
			if name == "few.tacozip" {
				if err := store.Put(name, []byte("old")); err != nil {
					t.Fatal(err)
				}
			}
			killed := killAt(t, store, nth, args)
			checkKilled(t, nth, objectsOf(t, store, name), want)
			if !killed {
				if nth < 5 {
					t.Fatalf("%s: only %d requests", name, nth)
				}
				break
			}
			r := chaski(t.Context(), args...)
			got := objectsOf(t, store, name)
			if r.code != 0 && strings.Contains(r.err, "exists") { // a folder that was complete but for its mark
				r.code = 0
				delete(got, "/.chaski-unfinished")
			}
			if r.code != 0 || !maps.Equal(got, want) {
				t.Fatalf("%s, request %d, next run: objects %v, exit %d: %s", name, nth,
					slices.Sorted(maps.Keys(got)), r.code, r.err)
			}
		}
	}
	resp, err := http.Get(store.URL + "/bucket?uploads")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if resp.Body.Close() != nil || err != nil || strings.Contains(string(b), "<UploadId>") {
		t.Errorf("uploads are left: %s %v", b, err)
	}
}

// killAt runs a command in a child that is killed at its n-th request, each second time after the store has answered
// it. It is false if the command made fewer.
func killAt(t *testing.T, store *fakes3.Store, nth int64, args []string) bool {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKillsInStore$")
	child.Env = append(os.Environ(), killedInStore+"="+strings.Join(args, "\n"))
	var n atomic.Int64
	started := make(chan bool)
	store.Answer(func(w http.ResponseWriter, r *http.Request, _ int64) bool {
		<-started
		if n.Add(1) != nth {
			return false
		}
		if nth%2 == 0 {
			store.Serve(w, r)
		}
		_ = child.Process.Kill()
		return true
	})
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	err := child.Wait()
	store.Answer(nil)
	if killed := n.Load() >= nth; killed != (err != nil) {
		t.Fatalf("%d requests, child: %v", n.Load(), err)
	}
	return n.Load() >= nth
}

// checkKilled checks the objects that a killed run has left.
func checkKilled(t *testing.T, nth int64, got, want map[string]string) {
	t.Helper()
	if b, is := got[""]; is && b != "old" && b != want[""] {
		t.Fatalf("request %d: %d bytes, neither old nor new", nth, len(b))
	}
	if _, is := got["/COLLECTION.json"]; !is {
		return
	}
	for name, b := range want {
		if got[name] != b {
			t.Fatalf("request %d: a container without %s", nth, name)
		}
	}
}
