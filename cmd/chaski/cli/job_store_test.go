package cli

import (
	"net/http"
	"strings"
	"testing"

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
