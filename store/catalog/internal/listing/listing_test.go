package listing

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFilesBeside: a listing has the files beside rasters by the directory as the paths of the rasters begin, whatever
// the way in.
func TestFilesBeside(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.tif", "a.tfw", "sub/b.tif", "sub/b.tif.msk", "sub/c.txt"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, src := range []string{dir, ".", "**/*.tif", dir + "/**/*.tif", "./**"} {
		l, err := List(t.Context(), src, nil, nil, Rasters)
		if err != nil {
			t.Fatal(src, err)
		}
		found := map[string]bool{}
		for i := range l.Paths {
			for name := range l.Beside[filepath.Dir(l.Path(i))] {
				found[name] = true
			}
		}
		if len(l.Paths) != 2 || len(found) != 2 || !found["a.tfw"] || !found["b.tif.msk"] {
			t.Errorf("%s: rasters %q, and beside them %v", src, l.Paths, l.Beside)
		}
	}
}

// TestGlobAgainstRegexp compares a matcher with the same pattern as a regular expression.
func TestGlobAgainstRegexp(t *testing.T) {
	part := rapid.SampledFrom([]string{"**", "*", "a", "b", "a*", "*b", "?", "a?b", "[ab]", "*a*"})
	name := rapid.SampledFrom([]string{"a", "b", "ab", "aab", "c", "acb", "ba"})
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.SliceOfN(part, 1, 5).Draw(t, "pattern")
		parts := rapid.SliceOfN(name, 1, 6).Draw(t, "path")
		expr := "^"
		for _, p := range pattern {
			if p == "**" {
				expr += "([^/]+/)*"
				continue
			}
			expr += strings.NewReplacer("*", "[^/]*", "?", "[^/]").Replace(p) + "/"
		}
		want := regexp.MustCompile(expr + "$").MatchString(strings.Join(parts, "/") + "/")
		m, err := newMatcher(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time from what it remembers
			got, _ := m.match(strings.Join(parts, "/"))
			if got != want {
				t.Fatalf("%q matches %q: %v, want %v", pattern, parts, got, want)
			}
			m.match(strings.Join(parts[:len(parts)/2], "/") + "/x") // another path between them
		}
	})
}

// TestPatternRoundTrip promises that an id that a pattern finds gives back the path, and that an id put into a pattern
// is found.
func TestPatternRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lit := rapid.StringMatching(`[ab/._]{0,4}`)
		p, err := ParsePattern(strings.Join(rapid.SliceOfN(lit, 2, 4).Draw(t, "literals"), "{id}"))
		if err != nil {
			t.Fatal(err)
		}
		id := rapid.StringMatching(`[ab/]{1,4}`).Draw(t, "id")
		if got, ok := p.Match(p.Path(id)); !ok || got != id {
			t.Fatalf("%s: %q found in %s (%v), want %q", p.Path("{id}"), got, p.Path(id), ok, id)
		}
		s := rapid.StringMatching(`[ab/._]{0,12}`).Draw(t, "path")
		if got, ok := p.Match(s); ok && (got == "" || p.Path(got) != s) {
			t.Fatalf("%s: %q found in %s", p.Path("{id}"), got, s)
		}
	})
}
