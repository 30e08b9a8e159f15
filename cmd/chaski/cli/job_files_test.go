package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
)

// TestJobConverts: the shards of a job leave the files that convert writes, and merge says that they are there.
func TestJobConverts(t *testing.T) {
	dir := t.TempDir()
	src := testdata(t, "coast", "coast_dir", "DATA")
	job, into, once := filepath.Join(dir, "job"), filepath.Join(dir, "new"), filepath.Join(dir, "once")
	flags := []string{"--to", "rumi", "--tile", "64", "--level", "3", src}
	for _, args := range [][]string{
		append([]string{"convert", "-o", once}, flags...),
		append([]string{"job", "plan", "convert", "-o", job, "--into", into, "--shards", "3"}, flags...),
		{"job", "local", job},
	} {
		if r := chaski(t.Context(), args...); r.code != 0 {
			t.Fatalf("%q: exit %d: %s", args, r.code, r.err)
		}
	}
	r := chaski(t.Context(), "job", "merge", job)
	if r.code != 0 {
		t.Fatal(r.err)
	}
	n := 0
	err := filepath.WalkDir(once, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		want, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(once, p)
		if have, err := os.ReadFile(filepath.Join(into, rel)); err != nil || string(have) != string(want) {
			t.Errorf("%s: %d bytes, want %d, and the same: %v", rel, len(have), len(want), err)
		}
		return nil
	})
	if lines := strings.Count(r.out, "\n"); err != nil || n == 0 || lines != n {
		t.Errorf("%d files and %d lines: %v", n, lines, err)
	}
	for _, args := range [][]string{
		{"job", "plan", "convert", "-o", job, src}, {"job", "plan", "convert", "-o", job, "--into", "s3://b/new", src},
		{"job", "plan", "convert", "-o", job, "--into", into, "--tile", "7", src},
	} {
		if r := chaski(t.Context(), args...); r.code != 2 {
			t.Errorf("%q: exit %d: %s", args, r.code, r.err)
		}
	}
}

// TestJobMakes: a job of a recipe, in a directory or in a store, gives the container, the statistics and the note of
// 'chaski make'.
func TestJobMakes(t *testing.T) {
	store := fakes3.Start(t, "bucket")
	t.Setenv("AWS_ENDPOINT_URL", store.URL)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "coast.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The source is relative to the recipe.
	recipe := strings.Replace(string(text), "../testdata/coast/coast.tacozip", "coast.tacozip", 1)
	container, err := os.ReadFile(testdata(t, "coast", "coast.tacozip"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"coast.tacozip": string(container), "chips.yaml": recipe + "\n" +
		"quality: {max_nodata: 0}\n", "none.yaml": recipe + "\nstatistics: false\n"} {
		if err := os.WriteFile(at(name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	ok := func(args ...string) string {
		t.Helper()
		r := chaski(t.Context(), args...)
		if r.code != 0 {
			t.Fatalf("%q: exit %d: %s", args, r.code, r.err)
		}
		return r.err
	}
	same := func(a, b string) {
		t.Helper()
		one, err := os.ReadFile(at(a))
		if err != nil {
			t.Fatal(err)
		}
		if other, err := os.ReadFile(at(b)); err != nil || string(one) != string(other) {
			t.Errorf("%s has %d bytes and %s %d: %v", a, len(one), b, len(other), err)
		}
	}
	want := ok("make", "-o", at("one.tacozip"), "--stats", at("one.json"), at("chips.yaml"))
	ok("make", "-o", at("parts"), "--part-size", "1", at("chips.yaml"))
	parts := []string{"part0000.tacozip", "part0001.tacozip", "part0002.tacozip", ".tacocat/COLLECTION.json",
		".tacocat/level0.parquet"}
	ok("pack", "-o", at("packed"), "--part-size", "1", at("one.tacozip"))
	for _, name := range parts {
		same("packed/"+name, "parts/"+name)
	}
	for i, job := range []string{at("job"), "s3://bucket/jobs/make"} {
		ok("job", "plan", "make", "-o", job, "--shards", "4", at("chips.yaml"))
		r := chaski(t.Context(), "job", "merge", "-o", at("two.tacozip"), job)
		if r.code != 1 || !strings.Contains(r.err, "4 of 4 shards have no result") {
			t.Errorf("merge of nothing: exit %d: %s", r.code, r.err)
		}
		ok("job", "run", "--shard", "2", job)
		ok("job", "local", "--parallel", "2", job)
		if notes := ok("job", "merge", "-o", at("two.tacozip"), "--stats", at("two.json"), job); notes != want {
			t.Errorf("%q, want %q", notes, want)
		}
		same("one.tacozip", "two.tacozip")
		same("one.json", "two.json")
		other := fmt.Sprintf("parts%d", i)
		ok("job", "merge", "-o", at(other), "--part-size", "1", job)
		for _, name := range parts {
			same("parts/"+name, other+"/"+name)
		}
		for code, args := range map[int][]string{
			2: {"job", "merge", job}, 1: {"job", "merge", "-o", at("none/two.tacozip"), job},
		} {
			if r := chaski(t.Context(), args...); r.code != code {
				t.Errorf("%q: exit %d: %s", args, r.code, r.err)
			}
		}
	}
	ok("job", "plan", "make", "-o", at("none"), at("none.yaml"))
	ok("job", "local", at("none"))
	r := chaski(t.Context(), "job", "merge", "-o", at("three.tacozip"), "--stats", at("three.json"), at("none"))
	if r.code != 1 || !strings.Contains(r.err, "statistics") {
		t.Errorf("no statistics: exit %d: %s", r.code, r.err)
	}
	ok("job", "plan", "verify", "-o", at("verify"), at("coast.tacozip"))
	ok("job", "local", at("verify"))
	r = chaski(t.Context(), "job", "merge", "-o", at("one.tacozip"), "--stats", at("one.tacozip"), at("none"))
	if r.code != 2 || !strings.Contains(r.err, "would replace") {
		t.Errorf("statistics over the container: exit %d: %s", r.code, r.err)
	}
	for _, args := range [][]string{
		{"--stats", at("x.json"), at("verify")}, {"--part-size", "1", at("verify")}, {"--form", "zip", at("verify")},
		{"-o", at("four.tacozip"), "--part-size", "1", at("none")}, {"-o", at("four"), "--form", "cube", at("none")},
		{"-o", at("four"), "--part-size", "4 lots", at("none")},
		{"-o", at("four"), "--form", "zip", "--part-size", "1", at("none")},
	} {
		if r := chaski(t.Context(), append([]string{"job", "merge"}, args...)...); r.code != 2 {
			t.Errorf("%q: exit %d: %s", args, r.code, r.err)
		}
	}
}
