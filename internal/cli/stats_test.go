package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStatsOfTheRowsThatCount: of a table and of a catalog, conditions and a split leave the statistics of a table
// that has those rows only.
func TestStatsOfTheRowsThatCount(t *testing.T) {
	dir := t.TempDir()
	table := func(name string, keep func(k int) bool) string {
		var b strings.Builder
		b.WriteString("image,rank,split\n")
		for k := range 12 {
			if keep(k) {
				img := testdata(t, "coast", "coast_dir", "DATA", fmt.Sprintf("tile_%02d", k%3), "s2", "img.tif")
				fmt.Fprintf(&b, "%s,%d,%s\n", img, k, []string{"train", "val", "train"}[k%3])
			}
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	of := func(args ...string) string {
		r := chaski(t.Context(), append([]string{"stats", "--field", "image=image"}, args...)...)
		if r.code != 0 {
			t.Fatalf("stats %q: exit %d: %s", args, r.code, r.err)
		}
		return r.out
	}
	all := table("all.csv", func(int) bool { return true })
	for _, c := range []struct {
		flags []string
		keep  func(k int) bool
	}{
		{[]string{"--where", "rank > 6"}, func(k int) bool { return k > 6 }},
		{[]string{"--split", "val"}, func(k int) bool { return k%3 == 1 }},
		{[]string{"--where", "rank > 6", "--split", "val"}, func(k int) bool { return k > 6 && k%3 == 1 }},
	} {
		want := of(table("some.csv", c.keep))
		if got := of(append(c.flags, all)...); got != want {
			t.Errorf("%q: %.80s, want %.80s", c.flags, got, want)
		}
	}
	for kind, flags := range map[string][]string{"none of its 12 rows": {"--where", "rank > 99"}, "nope": {"--where", "nope > 1"}} {
		r := chaski(t.Context(), append([]string{"stats", "--field", "image=image", all}, flags...)...)
		if r.code != 1 || !errorLine.MatchString(r.err) || !strings.Contains(r.err, kind) || r.out != "" {
			t.Errorf("%q: exit %d: %s", flags, r.code, r.err)
		}
	}
}
