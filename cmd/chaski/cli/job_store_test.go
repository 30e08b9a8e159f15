package cli

import (
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/job/kinds"
	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
)

// TestJobInStore: a job whose folder is in an object store merges to the file of one pass, also if the store refuses
// every third request for a while. Of two plans into one place the second is refused.
func TestJobInStore(t *testing.T) {
	store := fakes3.Start(t, "bucket")
	t.Setenv("AWS_ENDPOINT_URL", store.URL)
	job, chips := "s3://bucket/jobs/one", testdata(t, "coast", "coast_dir", "DATA", "*", "s2", "img.tif")
	ok := func(args ...string) string {
		t.Helper()
		r := chaski(t.Context(), args...)
		if r.code != 0 {
			t.Fatalf("%q: exit %d: %s", args, r.code, r.err)
		}
		return r.out
	}
	want := ok("stats", chips)
	ok("job", "plan", "stats", "-o", job, "--shards", "3", chips)
	r := chaski(t.Context(), "job", "plan", "stats", "-o", job, chips)
	if r.code == 0 || !strings.Contains(r.err, "there is a job already") {
		t.Errorf("a second plan: exit %d: %s", r.code, r.err)
	}
	r = chaski(t.Context(), "job", "merge", job)
	if r.code != 1 || !strings.Contains(r.err, "3 of 3 shards have no result") {
		t.Errorf("merge of nothing: exit %d: %s", r.code, r.err)
	}
	store.Answer(func(w http.ResponseWriter, _ *http.Request, n int64) bool {
		if n%3 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return n%3 == 0
	})
	ok("job", "run", "--shard", "1", job)
	store.Answer(nil)
	out := strings.Join(strings.Fields(ok("job", "status", "--json", job)), "")
	if !strings.Contains(out, `"done":1,`) || !strings.Contains(out, `"missing":[0,2]`) {
		t.Errorf("status: %s", out)
	}
	ok("job", "local", job)
	if got := ok("job", "merge", job); got != want {
		t.Errorf("%.200s\nwant %.200s", got, want)
	}
	r = chaski(t.Context(), "job", "status", "s3://bucket/jobs/two")
	if r.code != 1 || !strings.Contains(r.err, "s3://bucket/jobs/two/job.json") ||
		!strings.HasSuffix(strings.TrimSpace(r.err), "not found") {
		t.Errorf("no job: exit %d: %s", r.code, r.err)
	}
}

// plans are the arguments that plan a job of each kind over chips and their masks, with a directory of its own.
func plans(t *testing.T) map[string]func(dir string) []string {
	t.Helper()
	data := testdata(t, "coast", "coast_dir", "DATA")
	chips := filepath.Join(data, "*", "s2", "img.tif")
	pairs := []string{"--field", "image={id}/s2/img.tif", "--field", "mask={id}/ref/label.tif", data}
	of := func(args ...string) func(string) []string { return func(string) []string { return args } }
	return map[string]func(dir string) []string{
		"stats":   of(chips),
		"weights": of(append([]string{"--cell", "16"}, pairs...)...),
		"verify":  of(data),
		"index":   of("--absolute", chips),
		"make":    of(filepath.Join("..", "..", "..", "examples", "coast.yaml")),
		"convert": func(dir string) []string {
			return []string{"--into", filepath.Join(dir, "new"), "--to", "rumi", "--tile", "64", "--level", "3", data}
		},
	}
}

// TestEveryKindInStore: a job of each kind whose folder is in a store merges to what it gives in a directory. Meanwhile
// the store refuses every fifth request, ends the connection within the upload of a result, and takes one result only
// after another machine has written it. A result that is torn in the store is done again.
func TestEveryKindInStore(t *testing.T) {
	store := fakes3.Start(t, "bucket")
	t.Setenv("AWS_ENDPOINT_URL", store.URL)
	all := plans(t)
	if have := slices.Sorted(maps.Keys(all)); !slices.Equal(have, kinds.All.Names()) {
		t.Errorf("the kinds are %q, want %q", have, kinds.All.Names())
	}
	for kind, args := range all {
		if testing.Short() && kind != "make" && kind != "stats" && kind != "convert" {
			continue // their results go the way of those of stats
		}
		t.Run(kind, func(t *testing.T) {
			ok := func(args ...string) string {
				t.Helper()
				r := chaski(t.Context(), append([]string{"job"}, args...)...)
				if r.code != 0 {
					t.Fatalf("%q: exit %d: %s", args, r.code, r.err)
				}
				return r.out
			}
			plan := func(job, dir string) {
				ok(append([]string{"plan", kind, "-o", job, "--shards", "3"}, args(dir)...)...)
			}
			merge := func(job string) string {
				if kind != "make" {
					return ok("merge", job)
				}
				out := filepath.Join(t.TempDir(), "out.tacozip")
				ok("merge", "-o", out, job)
				b, err := os.ReadFile(out)
				if err != nil {
					t.Fatal(err)
				}
				ok("merge", "-o", "s3://bucket/out.tacozip", job)
				if stored := objectsOf(t, store, "out.tacozip")[""]; stored != string(b) {
					t.Errorf("%d bytes in the store, want %d, and the same", len(stored), len(b))
				}
				return string(b)
			}
			here, there, dir := filepath.Join(t.TempDir(), "job"), "s3://bucket/jobs/"+kind, t.TempDir()
			plan(here, dir)
			ok("local", here)
			want := merge(here)
			if kind == "convert" { // its files are there
				dir = t.TempDir()
			}
			plan(there, dir)
			results := "/bucket/jobs/" + kind + "/results/"
			upload := func(r *http.Request) bool {
				return r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, results)
			}
			hangs, goOn := make(chan bool), make(chan bool)
			var first, torn atomic.Bool
			store.Answer(func(_ http.ResponseWriter, r *http.Request, _ int64) bool {
				if upload(r) && first.CompareAndSwap(false, true) {
					close(hangs)
					<-goOn
				}
				return false
			})
			late := make(chan result)
			go func() { late <- chaski(t.Context(), "job", "run", "--shard", "0", there) }()
			select {
			case <-hangs:
			case r := <-late:
				t.Fatalf("no upload of a result: exit %d: %s", r.code, r.err)
			}
			ok("run", "--shard", "0", there)
			close(goOn)
			if r := <-late; r.code != 0 {
				t.Errorf("a late upload: exit %d: %s", r.code, r.err)
			}
			store.Answer(func(w http.ResponseWriter, r *http.Request, n int64) bool {
				if n%5 == 0 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return true
				}
				if upload(r) && torn.CompareAndSwap(false, true) {
					_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
					panic(http.ErrAbortHandler) // it ends the connection
				}
				return false
			})
			ok("local", there)
			store.Answer(nil)
			if have := merge(there); have != want {
				t.Errorf("%d bytes, want %d, and the same", len(have), len(want))
			}
			key, err := store.Keys(strings.TrimPrefix(results, "/bucket/") + "1.")
			if err != nil || len(key) != 1 {
				t.Fatalf("results of shard 1: %q, %v", key, err)
			}
			if err := store.Put(key[0], []byte("{")); err != nil {
				t.Fatal(err)
			}
			if r := chaski(t.Context(), "job", "merge", "-o", filepath.Join(dir, "none"), there); r.code != 1 ||
				!strings.Contains(r.err, "1 of 3 shards have no result; the first is 1") {
				t.Errorf("a torn result: exit %d: %s", r.code, r.err)
			}
			ok("run", "--shard", "1", there)
			if have := merge(there); have != want {
				t.Errorf("after a torn result %d bytes, want %d, and the same", len(have), len(want))
			}
		})
	}
}
