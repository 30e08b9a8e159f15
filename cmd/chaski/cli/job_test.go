package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJobIsStats: the shards of a job, done one by one and the rest together, merge to the file that stats writes.
func TestJobIsStats(t *testing.T) {
	dir := t.TempDir()
	job, chips := filepath.Join(dir, "job"), testdata(t, "coast", "coast_dir", "DATA", "*", "s2", "img.tif")
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
	ok("job", "run", "--shard", "2", job)
	out := strings.Join(strings.Fields(ok("job", "status", "--json", job)), "")
	if !strings.Contains(out, `"missing":[0,1]`) {
		t.Errorf("status: %s", out)
	}
	out = filepath.Join(dir, "stats.json")
	r := chaski(t.Context(), "job", "merge", "-o", out, job)
	if r.code != 1 || !errorLine.MatchString(r.err) || !strings.Contains(r.err, "2 of 3 shards have no result") {
		t.Errorf("merge of a part: exit %d: %s", r.code, r.err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a merge that failed wrote a file")
	}
	out = strings.Join(strings.Fields(ok("job", "status", "--json", job)), "")
	if !strings.Contains(out, `"runs":[{"shard":2,"items":`) || !strings.Contains(out, `"state":"done","host":"`) {
		t.Errorf("status: %s", out)
	}
	ok("job", "local", job)
	if got := ok("job", "merge", job); got != want {
		t.Errorf("%.200s\nwant %.200s", got, want)
	}
	for _, args := range [][]string{
		{"job"}, {"job", "plan", "stats", chips}, {"job", "plan", "nothing", "-o", job, chips}, {"job", "run", job},
		{"job", "run", "--shard", "3", job},
		{"job", "plan", "stats", "-o", job, "--shards", "0", chips},
		{"job", "plan", "stats", "-o", "https://bucket/job", chips},
		{"job", "plan", "stats", "-o", job, "--shards", "2", "--shard-items", "2", chips},
	} {
		if r := chaski(t.Context(), args...); r.code != 2 {
			t.Errorf("%q: exit %d: %s", args, r.code, r.err)
		}
	}
}
