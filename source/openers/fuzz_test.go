package openers_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source/openers"
)

// FuzzRoots opens any path in a tree with links: what is opened is what the kernel opens by the path, and never a file
// outside of the roots. Errors have a kind. A shortened path names the same file.
func FuzzRoots(f *testing.F) {
	dir := rootsTree(f)
	for _, p := range []string{"a/in", "a/up/in", "a/leak/secret",
		"a/leak/../a/in", "a/self/../in", "a//./in", "alias/abs/in",
		"a/up/../out/secret", "out/secret", "../in", "a/in/",
		"a/in/.", "a/file", "a/none", "a/\x00", "a/sub/../../b/in"} {
		f.Add(p)
	}
	o := openers.Below(&openers.Files{}, []string{dir + "/a", dir + "/b"})
	roots := openers.RootsOf(o)
	f.Fuzz(func(t *testing.T, p string) {
		p = dir + "/" + p
		// A file is opened with "/" after its name too, by which the kernel asks for a directory.
		bare := p
		for strings.HasSuffix(bare, "/") || strings.HasSuffix(bare, "/.") {
			bare = strings.TrimSuffix(strings.TrimSuffix(bare, "."), "/")
		}
		want, kernel := os.ReadFile(bare)
		got, err := contents(o, p)
		switch {
		case err == nil && (kernel != nil || got != string(want)):
			t.Fatalf("%q: %q, but the kernel reads %q, %v", p, got, want, kernel)
		case err == nil && got == "secret":
			t.Fatalf("%q: a file outside of the roots is read", p)
		case err != nil && fault.KindOf(err) == 0:
			t.Fatalf("%q: an error without a kind: %v", p, err)
		}
		if allowed, err := roots.Allow(p); err == nil {
			if real, err := filepath.EvalSymlinks(allowed); err == nil && !strings.HasPrefix(real+"/", dir+"/a/") &&
				!strings.HasPrefix(real+"/", dir+"/b/") {
				t.Fatalf("%q is allowed, and leads to %q", p, real)
			}
		}
		if bare != p || strings.IndexByte(p, 0) >= 0 {
			return // a shortened path does not have the "/"
		}
		before, err := os.Stat(p)
		after, shortErr := os.Stat(pathname.Join(p))
		if (err == nil) != (shortErr == nil) && !errors.Is(shortErr, fs.ErrNotExist) ||
			err == nil && (shortErr != nil || !os.SameFile(before, after)) {
			t.Fatalf("%q, shortened: %v, %v", p, err, shortErr)
		}
	})
}
