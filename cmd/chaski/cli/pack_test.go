package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

const about = `{"id": "chips", "dataset_version": "1.0", "description": "d", "licenses": ["CC0-1.0"],
	"providers": [{"name": "Ana"}], "tasks": ["other"], "curators": [{"name": "Ben"}]}`

// TestPack: containers go from a ZIP to a folder and back without a change of a byte, and every container of the
// original writers that TACO 2 can hold has the same leaves afterwards.
func TestPack(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	testfile.Write(t, at("about.json"), []byte(about))
	for i, from := range [][]string{{"coast", "coast.tacozip"}, {"coast", "coast_dir"},
		{"containers", "taco-v2", "spec200", "unsorted_three_level.tacozip"},
		{"containers", "taco-v2", "current", "flat_istac.tacozip"}} {
		path := testdata(t, from...)
		zip, folder, back := at("a.tacozip"), at("folder"+string(rune('a'+i))), at("b.tacozip")
		for _, args := range [][]string{{"-o", zip, "--collection", at("about.json"), path}, {"-o", folder, zip},
			{"-o", back, "--workers", "1", folder}} {
			if r := chaski(t.Context(), append([]string{"pack"}, args...)...); r.code != 0 {
				t.Fatalf("%q: %s", args, r.err)
			}
			if got, want := leavesOf(t, args[1]), leavesOf(t, path); got != want {
				t.Errorf("%q: leaves %s, want %s", args, got, want)
			}
		}
		a := testfile.Read(t, zip)
		if b, err := os.ReadFile(back); err != nil || string(a) != string(b) {
			t.Errorf("%s: the ZIP of its folder differs (%v)", path, err)
		}
	}
}

// leavesOf returns the paths and hashes of the files of a container.
func leavesOf(t *testing.T, path string) string {
	t.Helper()
	r := chaski(t.Context(), "ls", "--leaves", "--sha256", "--format", "json", path)
	if r.code != 0 {
		t.Fatal(r.err)
	}
	var b strings.Builder
	for line := range strings.Lines(r.out) { // without places, which change
		path, rest, _ := strings.Cut(line, `,"offset"`)
		_, sum, _ := strings.Cut(rest, `"sha256"`)
		b.WriteString(path + sum)
	}
	return b.String()
}

// TestPackOfDirectories: files become samples, and what cannot is refused with nothing written.
func TestPackOfDirectories(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	files := map[string]string{"about.json": about, "in/b/x.tif": "1", "in/a/x.tif": "2", "in/.hidden": "3",
		"bare.json": "{}"}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, at(name), []byte(content))
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{at("in")}, 2, "-o OUT"},
		{[]string{"-o", at("x.tacozip"), at("in")}, 2, "--collection"},
		{[]string{"-o", at("x.tacozip"), "--collection", at("bare.json"), at("in")}, 1, "id is"},
		{[]string{"-o", at("x.tacozip"), "--collection", at("none.json"), at("in")}, 1, "none.json"},
		{[]string{"-o", at("x.tacozip"), "--form", "tar", at("in")}, 2, "--form"},
		{[]string{"-o", at("x.tacozip"), at("about.json")}, 1, "about.json"},
		{[]string{"-o", at("x.tacozip"), "--collection", at("about.json"), "--where", "id = 'a'", at("in")}, 2,
			"--where"},
		{[]string{"-o", at("x.tacozip"), "--collection", at("about.json"), "--limit", "1", at("in")}, 2, "--limit"},
	} {
		r := chaski(t.Context(), append([]string{"pack"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%q: exit %d, want %d: %s", c.args, r.code, c.code, r.err)
		}
		if _, err := os.Lstat(at("x.tacozip")); err == nil {
			t.Fatalf("%q wrote something", c.args)
		}
	}
	r := chaski(t.Context(), "pack", "-o", at("x.tacozip"), "--collection", at("about.json"), at("in"))
	if r.code != 0 || !strings.Contains(r.out, "2 samples, 2 files") {
		t.Fatalf("%s%s", r.out, r.err)
	}
	if r := chaski(t.Context(), "cat", "--format", "raw", at("x.tacozip")+"::a/y.tif"); r.code != 1 {
		t.Errorf("a sample that is not there: %d", r.code)
	}
	// A container in the directory does not become a sample of the next one.
	for range 2 {
		r := chaski(t.Context(), "pack", "-o", at("in/x.tacozip"), "--collection", at("about.json"), at("in"))
		if r.code != 0 || !strings.Contains(r.out, "2 samples, 2 files") {
			t.Fatalf("%s%s", r.out, r.err)
		}
	}
	if err := os.Remove(at("in/x.tacozip")); err != nil {
		t.Fatal(err)
	}
	// Links: to a file its bytes, to a directory around it an error.
	if err := os.Symlink(at("about.json"), at("in/a/y")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", at("in/b/y")); err != nil {
		t.Fatal(err)
	}
	r = chaski(t.Context(), "pack", "-o", at("y.tacozip"), "--collection", at("about.json"), at("in"))
	if r.code != 1 || !strings.Contains(r.err, "leads to a directory that contains it: unsupported") {
		t.Errorf("a link to the directory around it: %d %s", r.code, r.err)
	}
}

// TestPackOfSubsets: conditions choose samples, and the container says what it was taken from.
func TestPackOfSubsets(t *testing.T) {
	out := filepath.Join(t.TempDir(), "few.tacozip")
	zip := testdata(t, "coast", "coast.tacozip")
	if r := chaski(t.Context(), "pack", "-o", out, "--where", "cloud_cover < 20", "--order-by", "cloud_cover desc",
		"--limit", "3", zip); r.code != 0 {
		t.Fatal(r.err)
	}
	want := chaski(t.Context(), "sql", "--format", "json",
		"SELECT id, cloud_cover FROM data WHERE cloud_cover < 20 ORDER BY cloud_cover DESC LIMIT 3", zip)
	got := chaski(t.Context(), "sql", "--format", "json", "SELECT id, cloud_cover FROM data", out)
	if got.code != 0 || got.out != want.out {
		t.Errorf("%s%s, want %s", got.out, got.err, want.out)
	}
	if b, err := os.ReadFile(out); err != nil || !strings.Contains(string(b), `"taco:subset_of": "coast"`) {
		t.Errorf("its COLLECTION.json does not say what it is a subset of (%v)", err)
	}
	if r := chaski(t.Context(), "verify", out); r.code != 0 || r.err != "" {
		t.Errorf("%s%s", r.out, r.err)
	}
}

// TestPackOfBroken: what verify refuses is not copied, and nothing is written.
func TestPackOfBroken(t *testing.T) {
	dir := t.TempDir()
	described := filepath.Join(dir, "about.json")
	testfile.Write(t, described, []byte(about))
	bad := testdata(t, "containers", "bad")
	list, err := os.ReadDir(bad)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, e := range list {
		path, out := filepath.Join(bad, e.Name()), filepath.Join(dir, "out.tacozip")
		if chaski(t.Context(), "verify", path).code == 0 {
			continue
		}
		refused++
		r := chaski(t.Context(), "pack", "-o", out, "--collection", described, path)
		if _, err := os.Lstat(out); r.code == 0 || !os.IsNotExist(err) {
			t.Errorf("%s: exit %d, %s%v", e.Name(), r.code, r.out, err)
			_ = os.Remove(out)
		}
	}
	if refused < 10 {
		t.Errorf("only %d are refused", refused)
	}
}
