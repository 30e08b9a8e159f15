package cli

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestPackOfBadContainers: of the containers that are broken on purpose, pack copies and indexes only those that the
// manifest allows a reader to accept, and writes nothing for the others.
func TestPackOfBadContainers(t *testing.T) {
	f, err := os.Open(testdata(t, "containers", "manifest.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	described := filepath.Join(dir, "about.json")
	testfile.Write(t, described, []byte(about))
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	bad := 0
	for lines.Scan() {
		var c struct{ Type, Path, Expect string }
		if json.Unmarshal(lines.Bytes(), &c) != nil || c.Type != "bad" { // the paths of queries may be lists
			continue
		}
		path := testdata(t, "containers", filepath.FromSlash(c.Path))
		outs := map[string][]string{filepath.Join(dir, "a.tacozip"): {"--collection", described, path}}
		if strings.HasSuffix(path, ".tacozip") {
			beside := filepath.Join(dir, "beside.tacozip")
			b := testfile.Read(t, path)
			testfile.Write(t, beside, b)
			outs[filepath.Join(dir, "TACOLLECTION.json")] = []string{beside}
		}
		may := slices.Contains([]string{"accept", "error-or-accept", "readable-as-tortilla", "error-or-plain-v1",
			"refuse-on-extract"}, c.Expect)
		for out, args := range outs {
			r := chaski(t.Context(), append([]string{"pack", "--quiet", "-o", out}, args...)...)
			_, err := os.Stat(out)
			if written := err == nil; r.code == 0 && !may || r.code > 1 || written != (r.code == 0) {
				t.Errorf("%s (%s) into %s: exit %d, %s", c.Path, c.Expect, filepath.Base(out), r.code, r.err)
			}
			if err == nil {
				if err := os.Remove(out); err != nil {
					t.Fatal(err)
				}
			}
		}
		bad++
	}
	if err := lines.Err(); err != nil || bad < 20 {
		t.Errorf("%d bad containers: %v", bad, err)
	}
}

// TestWrongContainers: a container of another form than a command takes is named, with what the command takes.
func TestWrongContainers(t *testing.T) {
	dir := t.TempDir()
	one := filepath.Join(dir, "one.tacozip")
	b, err := os.ReadFile(testdata(t, "coast", "coast.tacozip"))
	if err == nil {
		err = os.WriteFile(one, b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"is a Tortilla 0.5: only one of TACO 2 is copied as TACO 2", []string{"pack", "-o",
			filepath.Join(dir, "new.tacozip"), testdata(t, "containers", "tortilla", "mixed.tortilla")}},
		{"is a TACO 2 (ZIP): only one of TACO 3 is copied as TACO 3", []string{"pack", "-o",
			filepath.Join(dir, "new.taco3.zip"), one}},
	} {
		if r := chaski(t.Context(), c.args...); r.code != 1 || !strings.Contains(r.err, c.want) {
			t.Errorf("%q: exit %d: %s", c.args[:2], r.code, r.err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
}
