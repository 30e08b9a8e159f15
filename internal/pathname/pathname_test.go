package pathname_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/internal/pathname"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestPathsWithoutParents promises that paths without ".." are those of package filepath.
func TestPathsWithoutParents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`(/|\./|a|b\.\.|\.\.c|\.|//|/d/){0,5}`).Filter(func(s string) bool {
			return !pathname.HasParent(s)
		})
		a, b := part.Draw(t, "a"), part.Draw(t, "b")
		if got, want := pathname.Join(a, b), filepath.Join(a, b); got != want {
			t.Errorf("Join %q %q: %q, want %q", a, b, got, want)
		}
		if got, want := pathname.Dir(a), filepath.Dir(a); got != want {
			t.Errorf("Dir %q: %q, want %q", a, got, want)
		}
		got, err := pathname.Abs(a)
		if want, werr := filepath.Abs(a); got != want || (err == nil) != (werr == nil) {
			t.Errorf("Abs %q: %q, want %q", a, got, want)
		}
	})
}

// TestPathsOfTheKernel promises that Join, Abs and Dir name the file that the kernel opens by the path as it
// was, in a tree with links and from a working directory that is reached by a link.
func TestPathsOfTheKernel(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/in", "a/sub/in", "b/in", "out/in"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, filepath.Join(dir, name), nil)
	}
	for name, to := range map[string]string{
		"a/up": "../b", "a/abs": dir + "/b", "a/self": "sub", "a/leak": "../out", "alias": "a",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir+"/a/sub", dir+"/cwd"); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir + "/cwd") // which sets $PWD too
	name := rapid.SampledFrom([]string{
		"..", "..", ".", "", "a", "b", "sub", "up", "abs", "self", "leak", "alias", "in", dir,
	})
	same := func(t *rapid.T, what, got, by string) {
		want, err := os.Stat(by)
		is, gotErr := os.Stat(got)
		if (err == nil) != (gotErr == nil) || err == nil && !os.SameFile(want, is) {
			t.Errorf("%s of %q: %q, %v; the kernel: %v", what, by, got, gotErr, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(name, 1, 7).Draw(t, "parts")
		p := strings.Join(parts, "/")
		if p == "" || strings.HasSuffix(p, "in/") || strings.HasSuffix(p, "in/.") {
			return // of a file with "/" the kernel says that it is not a directory, filepath drops it
		}
		same(t, "Join", pathname.Join(p), p)
		abs, err := pathname.Abs(p)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "Abs", abs, p)
		if !filepath.IsAbs(abs) {
			t.Errorf("Abs of %q: %q", p, abs)
		}
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			same(t, "Dir", pathname.Dir(p)+"/"+filepath.Base(p), p)
		}
	})
}
