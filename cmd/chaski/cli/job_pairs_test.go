package cli

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestJobIsVerifyPairs: the shards of a job merge to the report of verify --pairs, with the same error and exit code,
// whatever their number and however many pairs are listed.
func TestJobIsVerifyPairs(t *testing.T) {
	race.SkipCovered(t)
	dir := coastPairs(t)
	for _, worst := range []string{"2", "20"} {
		args := []string{"--worst", worst, "--field", "image=images/{id}.tif", "--field", "mask=masks/{id}.tif", dir}
		want := chaski(t.Context(), append([]string{"verify", "--pairs", "--json"}, args...)...)
		if want.code != 1 || want.err == "" {
			t.Fatalf("exit %d: %s", want.code, want.err)
		}
		for _, shards := range []int{1, 4, 99} {
			if testing.Short() && shards != 4 {
				continue // the same goroutines for any number of shards
			}
			job := filepath.Join(t.TempDir(), "job")
			plan := []string{"job", "plan", "pairs", "-o", job, "--shards", fmt.Sprint(shards)}
			if r := chaski(t.Context(), append(plan, args...)...); r.code != 0 {
				t.Fatalf("plan: exit %d: %s", r.code, r.err)
			}
			if r := chaski(t.Context(), "job", "local", job); r.code != 0 {
				t.Fatalf("local: exit %d: %s", r.code, r.err)
			}
			if r := chaski(t.Context(), "job", "merge", job); r.out != want.out || r.err != want.err || r.code != 1 {
				t.Errorf("%d shards: exit %d: %s%s\nwant %s%s", shards, r.code, r.out, r.err, want.out, want.err)
			}
		}
	}
}
