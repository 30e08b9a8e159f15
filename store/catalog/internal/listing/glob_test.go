package listing

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
)

// TestGlobSteps promises that a glob costs at most the number of its parts for each name that it meets, however they
// repeat and however deep the names lie.
func TestGlobSteps(t *testing.T) {
	deep := strings.Repeat("a/", 200) + "a.tif"
	for _, pattern := range []string{
		strings.Repeat("**/", 5000) + "x.tif",
		strings.Repeat("**/a/", 100) + "x.tif",
		strings.Repeat("**/*/", 100) + "x.tif",
		strings.Repeat("*/", 200) + "*.tif",
	} {
		parts := strings.Split(pattern, "/")
		m, err := newMatcher(parts)
		if err != nil {
			t.Fatal(err)
		}
		names := 0
		for i := range 50 {
			if i == 0 {
				names += 201
			} else {
				names++ // the directories of the first path are known
			}
			m.match(strings.TrimSuffix(deep, "a.tif") + strconv.Itoa(i) + ".tif")
		}
		if bound := names * len(m.pattern); m.steps > bound {
			t.Errorf("%.20s…: %d steps for %d names, at most %d are allowed", pattern, m.steps, names, bound)
		}
	}
}

// TestGlobCollapses promises that equal "**" beside each other cost as much as one.
func TestGlobCollapses(t *testing.T) {
	m, err := newMatcher(strings.Split(strings.Repeat("**/", 5000)+"x.tif", "/"))
	if err != nil {
		t.Fatal(err)
	}
	if whole, _ := m.match("a/b/x.tif"); !whole || m.steps > 6 {
		t.Errorf("matches: %v, after %d steps of 3 names and 2 parts", whole, m.steps)
	}
}

// TestGlobLength promises that a longer glob than any path needs is refused before anything is listed.
func TestGlobLength(t *testing.T) {
	long := strings.Repeat("**/", 200_000) + "*.tif"
	for _, src := range []string{long, "s3://bucket/" + long} {
		_, err := List(t.Context(), src, nil, nil, Rasters)
		if fault.KindOf(err) != fault.Limit {
			t.Errorf("%.20s…: %v", src, err)
		}
	}
}

// TestGlobPrunes promises that a directory is entered exactly if a file below it could match: the judge is the pattern
// with its last parts taken away, as a regular expression.
func TestGlobPrunes(t *testing.T) {
	part := rapid.SampledFrom([]string{"**", "*", "a", "b", "a*", "[ab]"})
	name := rapid.SampledFrom([]string{"a", "b", "ab", "c"})
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.SliceOfN(part, 1, 5).Draw(t, "pattern")
		parts := rapid.SliceOfN(name, 1, 5).Draw(t, "path")
		want := false
		for i := range pattern {
			expr := "^"
			for _, p := range pattern[:i] {
				if p == "**" {
					expr += "([^/]+/)*"
				} else {
					expr += strings.ReplaceAll(p, "*", "[^/]*") + "/"
				}
			}
			if pattern[i] == "**" {
				expr += "([^/]+/)*"
			}
			want = want || regexp.MustCompile(expr+"$").MatchString(strings.Join(parts, "/")+"/")
		}
		m, err := newMatcher(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if _, below := m.match(strings.Join(parts, "/")); below != want {
			t.Fatalf("%q below %q: %v, want %v", pattern, parts, below, want)
		}
	})
}

// FuzzGlob matches any two paths with any pattern: as a slow matcher that tries every way, and with at most one step
// for each part of the pattern and of the paths.
func FuzzGlob(f *testing.F) {
	for _, p := range []string{"*", "**", "**/*.tif", "a/**/a.tif", "**/**/**/c.tif", "[ab]*/?.tif", "a/**", "[!a]*",
		"\\*", "**/a/**/*", "*/../*.tif", "./*", "a//*", "["} {
		f.Add(p, "a/b/c.tif", "a/b/a.tif")
		f.Add(p, "a//c.tif", "[a]/*")
	}
	f.Fuzz(func(t *testing.T, pattern, first, second string) {
		parts := strings.Split(pattern, "/")
		if len(parts) > 6 || len(pattern)+len(first)+len(second) > 200 {
			return // the slow matcher tries every way
		}
		m, err := newMatcher(parts)
		if err != nil {
			if fault.KindOf(err) != fault.NotFound {
				t.Fatal(err)
			}
			return
		}
		names := 0
		for _, p := range []string{first, second, first} {
			names += strings.Count(p, "/") + 1
			whole, below := m.match(p)
			if want := slowMatch(parts, strings.Split(p, "/")); whole != want {
				t.Fatalf("%q matches %q: %v, want %v", pattern, p, whole, want)
			}
			if m.steps > names*len(parts) {
				t.Fatalf("%q: %d steps for %d names", pattern, m.steps, names)
			}
			fresh, err := newMatcher(parts)
			if err != nil {
				t.Fatal(err)
			}
			if w, b := fresh.match(p); w != whole || b != below {
				t.Fatalf("%q and %q: %v %v after other paths, %v %v without", pattern, p, whole, below, w, b)
			}
		}
	})
}

// slowMatch tries every number of directories for each "**".
func slowMatch(pattern, parts []string) bool {
	switch {
	case len(pattern) == 0:
		return len(parts) == 0
	case pattern[0] == anyDirs:
		for i := range len(parts) + 1 {
			if slowMatch(pattern[1:], parts[i:]) {
				return true
			}
		}
		return false
	case len(parts) == 0:
		return false
	}
	ok, err := path.Match(pattern[0], parts[0])
	return err == nil && ok && slowMatch(pattern[1:], parts[1:])
}
