package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestStatsOfSelectedRows: for a table and a catalog, conditions and a split yield the statistics
// of a table that has the remaining rows only.
func TestStatsOfSelectedRows(t *testing.T) {
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
		testfile.Write(t, path, []byte(b.String()))
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
	for kind, flags := range map[string][]string{
		"none of its 12 rows":               {"--where", "rank > 99"},
		": where query: no column \"nope\"": {"--where", "nope > 1"},
	} {
		r := chaski(t.Context(), append([]string{"stats", "--field", "image=image", all}, flags...)...)
		if r.code != 1 || !errorLine.MatchString(r.err) || !strings.Contains(r.err, kind) || r.out != "" {
			t.Errorf("%q: exit %d: %s", flags, r.code, r.err)
		}
	}
}

// TestStatsOfASpec: a spec in JSON does what the flags do, and can also choose a part of a split by
// shares.
func TestStatsOfASpec(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, []byte(text))
		return path
	}
	var table strings.Builder
	table.WriteString("image,rank\n")
	for k := range 12 {
		fmt.Fprintf(&table, "%s,%d\n",
			testdata(t, "coast", "coast_dir", "DATA", fmt.Sprintf("tile_%02d", k%3), "s2", "img.tif"), k)
	}
	data := file("all.csv", table.String())
	spec := func(more string) string {
		return file("spec.json", fmt.Sprintf(
			`{"version":1,"source":%q,"fields":[{"name":"image","column":"image"}],"batch_size":4%s}`, data, more))
	}
	of := func(args ...string) (samples int, out string) {
		r := chaski(t.Context(), append([]string{"stats"}, args...)...)
		if _, err := fmt.Sscanf(r.out, `{"version":1,"samples":%d`, &samples); r.code != 0 || err != nil {
			t.Fatalf("stats %q: exit %d: %s%s", args, r.code, r.err, r.out)
		}
		return samples, r.out
	}
	_, want := of("--field", "image=image", "--where", "rank > 6", data)
	if _, got := of(spec(`,"where":[{"column":"rank","op":">","value":6}]`)); got != want {
		t.Errorf("%.80s, want %.80s", got, want)
	}
	total := 0
	for _, part := range []string{"train", "val"} { // not by hash of the paths, which are those of this checkout
		n, _ := of(spec(`,"split":{"by":"column","column":"rank","shares":[{"name":"train","weight":1},` +
			`{"name":"val","weight":1}]},"use":"` + part + `"`))
		total += n
	}
	if total != 12 {
		t.Errorf("the parts of a split have %d of 12 samples", total)
	}
	bad := file("cut.tif", "II*")
	data = file("bad.csv", table.String()+bad+",12\n")
	for _, policy := range []string{"skip", "replace", "fill"} {
		if n, _ := of(spec(fmt.Sprintf(`,"bad_samples":%q`, policy))); n != 12 {
			t.Errorf("%s: %d samples", policy, n)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{spec("")}, 1, "cut.tif"},
		{[]string{spec(""), "--where", "rank > 1"}, 2, "--where"},
		{[]string{spec(""), "--bad-samples", "skip"}, 2, "--bad-samples"},
		{[]string{spec(""), "--from-metadata"}, 2, "--from-metadata"},
		{[]string{file("other.json", "{")}, 1, "spec"},
	} {
		r := chaski(t.Context(), append([]string{"stats"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.err, c.want) || r.out != "" {
			t.Errorf("%q: exit %d: %s", c.args, r.code, r.err)
		}
	}
}

// TestStatsOfACollection: a TACOLLECTION.json is a container, although its extension is that of a
// spec.
func TestStatsOfACollection(t *testing.T) {
	dir := t.TempDir()
	zip := testfile.Read(t, testdata(t, "coast", "coast.tacozip"))
	path := filepath.Join(dir, "TACOLLECTION.json")
	for name, b := range map[string][]byte{
		path:                               []byte(`{"id":"all","taco:sources":{"count":1,"files":["part.tacozip"]}}`),
		filepath.Join(dir, "part.tacozip"): zip,
	} {
		testfile.Write(t, name, b)
	}
	want := chaski(t.Context(), "stats", "--field", "image=s2/img.tif", filepath.Join(dir, "part.tacozip"))
	if got := chaski(t.Context(), "stats", "--field", "image=s2/img.tif", path); got.code != 0 || got.out != want.out {
		t.Errorf("exit %d: %s%.80s, want %.80s", got.code, got.err, got.out, want.out)
	}
	// This container has no columns of statistics.
	got := chaski(t.Context(), "stats", "--from-metadata", path)
	if got.code != 1 || !strings.Contains(got.err, "stats:mean") {
		t.Errorf("--from-metadata: exit %d: %s", got.code, got.err)
	}
	if got := chaski(t.Context(), "plan", "--field", "image=s2/img.tif", path); got.code != 0 {
		t.Errorf("plan: exit %d: %s", got.code, got.err)
	}
}
