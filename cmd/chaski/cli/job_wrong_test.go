package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestJobMistakes: what is wrong with a command of job is said on one line, with the argument as it was given and the
// exit code of its reason. A job that fails in two shards counts them, and one whose result is damaged says so.
func TestJobMistakes(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"a/1.tif": "no", "a/2.tif": "no", "a/3.tif": "", "bad/job.json": "x",
		"old/job.json": "{}"} {
		b := []byte(text)
		if text == "" {
			var err error
			if b, err = os.ReadFile(testdata(t, "coast", "coast_dir", "DATA", "tile_00", "s2", "img.tif")); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	job := at("job")
	if r := chaski(t.Context(), "job", "plan", "index", "-o", job, "--shards", "3", at("a")); r.code != 0 {
		t.Fatal(r.err)
	}
	file := at("a/3.tif")
	for _, c := range []struct {
		code int
		say  string
		args []string
	}{
		{2, `KIND is "cube"`, []string{"plan", "cube", dir}},
		{2, "-o FOLDER is missing", []string{"plan", "stats", at("a")}},
		{2, "--shards is 0", []string{"plan", "stats", "-o", at("x"), "--shards", "0", at("a")}},
		{2, "http://x/job", []string{"plan", "stats", "-o", "http://x/job", at("a")}},
		{1, "it has no bucket", []string{"plan", "index", "-o", "s3://", at("a")}},
		{1, at("nothing"), []string{"plan", "index", "-o", at("x"), at("nothing")}},
		{1, "there is a job already", []string{"plan", "index", "-o", job, at("a")}},
		{2, "--shard is missing", []string{"run", job}},
		{2, "--shard is 3: the job has shards 0 to 2", []string{"run", "--shard", "3", job}},
		{1, "3.tif/job.json: job: not found", []string{"run", "--shard", "0", file}},
		{1, "bad/job.json", []string{"run", "--shard", "0", at("bad")}},
		{1, "version 0, not 1", []string{"run", "--shard", "0", at("old")}},
		{1, "a/1.tif: header", []string{"run", "--shard", "0", job}},
		{1, "(2 shards failed, and this is the first)", []string{"local", "--ignore-errors", job}},
		{2, "--parallel is 0", []string{"local", "--parallel", "0", job}},
		{1, "2 of 3 shards have no result; the first is 0", []string{"merge", "-o", at("x"), job}},
		{2, "--output is empty", []string{"merge", "-o", "", job}},
		{2, "--stats is for the kind make", []string{"merge", "--stats", at("x"), job}},
		{1, "3.tif/job.json: job: not found", []string{"status", file}},
	} {
		r := chaski(t.Context(), append([]string{"job"}, c.args...)...)
		line, rest, _ := strings.Cut(r.err, "\n")
		if r.code != c.code || !strings.Contains(line, c.say) || rest != "" && c.code != 2 {
			t.Errorf("%q: exit %d: %s, want %d and %q", c.args, r.code, r.err, c.code, c.say)
		}
	}
	if _, err := os.Lstat(at("x")); err == nil {
		t.Error("a file was written")
	}
	results, err := os.ReadDir(filepath.Join(job, "results"))
	if err != nil || len(results) != 1 || !strings.HasPrefix(results[0].Name(), "2.") {
		t.Fatal(results, err)
	}
	// The result of shard 2 is not one of shard 0, under whose number it lies now.
	name := filepath.Join(job, "results", results[0].Name())
	if err := os.Rename(name, strings.Replace(name, "2.", "0.", 1)); err != nil {
		t.Fatal(err)
	}
	r := chaski(t.Context(), "job", "merge", "-o", at("x"), job)
	if r.code != 1 || !slices.Contains(strings.Split(r.err, ": "), "3 of 3 shards have no result; the first is 0, "+
		"whose file is damaged") {
		t.Errorf("a damaged result: exit %d: %s", r.code, r.err)
	}
}
