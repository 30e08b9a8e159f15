package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
