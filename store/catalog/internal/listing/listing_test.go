package listing

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestFilesBeside: a listing has the files beside rasters by the directory as the paths of the rasters begin, whatever
// the way in.
func TestFilesBeside(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.tif", "a.tfw", "sub/b.tif", "sub/b.tif.msk", "sub/c.txt"} {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, nil)
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

// TestPatternAgainstRegexp compares patterns without repeated names with the same regular expressions, and holds those
// with one name to what they stand for.
func TestPatternAgainstRegexp(t *testing.T) {
	piece := rapid.SampledFrom([]string{"{a}", "{b}", "{c c}", "*", "**", "/", "/**/", "x", "_", "xy", ".tif", "."})
	word := rapid.SampledFrom([]string{"x", "y", "_", "/", "xy", ".tif", ".", "a"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(t, "pattern"), "")
		patterns, err := ParsePatterns([]string{text, "*"}) // with a star no name holds slashes
		if err != nil {
			t.Fatal(err)
		}
		expr, seen, groups := "^", map[string]bool{}, []string(nil)
		for rest := text; rest != ""; {
			stars := len(rest) - len(strings.TrimLeft(rest, "*"))
			starts := len(rest) == len(text) || text[len(text)-len(rest)-1] == '/'
			end := strings.IndexByte(rest, '}')
			switch {
			case rest[0] == '{':
				if seen[rest[1:end]] {
					t.Skip("repeated")
				}
				seen[rest[1:end]], groups = true, append(groups, rest[1:end])
				expr, rest = expr+"([^/]+)", rest[end+1:]
			case stars == 2 && starts && strings.HasPrefix(rest, "**/"):
				expr, rest = expr+"(?:.*/)?", rest[3:]
			case stars == 2 && starts && rest == "**":
				expr, rest = expr+".*", ""
			case stars > 0:
				expr, rest = expr+"[^/]*", rest[stars:]
			default:
				expr, rest = expr+regexp.QuoteMeta(rest[:1]), rest[1:]
			}
		}
		path := strings.Join(rapid.SliceOfN(word, 0, 8).Draw(t, "path"), "")
		if rapid.Bool().Draw(t, "fits") { // most random paths match nothing
			fill := regexp.MustCompile(`\{[a-c ]+\}|\*+`)
			path = fill.ReplaceAllStringFunc(text, func(string) string {
				return strings.Join(rapid.SliceOfN(word, 1, 3).Draw(t, "fill"), "")
			})
		}
		want := regexp.MustCompile(expr + "$").FindStringSubmatch(path)
		got, ok, err := patterns[0].Match(path, nil)
		if err != nil || ok != (want != nil) || ok && !slices.Equal(got, want[1:]) ||
			!slices.Equal(patterns[0].Names(), groups) {
			t.Fatalf("%s in %s (%s): %q %q, %v, %v, want %q %q", text, path, expr, patterns[0].Names(), got, ok, err,
				groups, want)
		}
	})
}

// TestPatternOfOneName: the only name of patterns without stars stands for any text, and repeated names for the same.
func TestPatternOfOneName(t *testing.T) {
	lit := rapid.StringMatching(`[ab/._]{0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(lit, 2, 4).Draw(t, "literals"), "{id}")
		patterns, err := ParsePatterns([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		p := patterns[0]
		path := func(id string) string { return strings.ReplaceAll(text, "{id}", id) }
		id := rapid.StringMatching(`[ab/]{1,4}`).Draw(t, "id")
		if got, ok, _ := p.Match(path(id), nil); !ok || got[0] != id {
			t.Fatalf("%s: %q found in %s (%v), want %q", text, got, path(id), ok, id)
		}
		s := rapid.StringMatching(`[ab/._]{0,12}`).Draw(t, "path")
		if got, ok, _ := p.Match(s, nil); ok && (got[0] == "" || path(got[0]) != s) {
			t.Fatalf("%s: %q found in %s", text, got, s)
		}
	})
}

// TestPatternRepeatsAndLimits: names that are repeated have one text, and a pattern that tries too many is refused.
func TestPatternRepeatsAndLimits(t *testing.T) {
	patterns, err := ParsePatterns([]string{"{tile}/{date}/{tile}_{band}_{date}.tif",
		strings.Repeat("{a}*{b}*{c}*", 9)})
	if err != nil {
		t.Fatal(err)
	}
	got, ok, err := patterns[0].Match("a_b/2020/a_b_B_1_2020.tif", nil)
	if err != nil || !ok || !slices.Equal(got, []string{"a_b", "2020", "B_1"}) {
		t.Errorf("%q, %v, %v", got, ok, err)
	}
	if _, ok, err := patterns[0].Match("a_b/2020/a_B_1_2020.tif", nil); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if _, _, err := patterns[1].Match("", nil); fault.KindOf(err) != 0 {
		t.Errorf("an empty path: %v", err)
	}
	if _, _, err := patterns[1].Match(strings.Repeat("ab", 99), nil); fault.KindOf(err) != fault.Limit {
		t.Errorf("over %d steps: %v", maxSteps, err)
	}
}

// TestNamesDoNotTellWhatExists: a name of a table becomes the same path whether or not a directory, a tar or a file of
// this name lies outside of the roots.
func TestNamesDoNotTellWhatExists(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	roots := openers.NewRoots([]string{root})
	names := []string{outside + "/there.tar/a.tif", outside + `/a\b.tif`, "../" + filepath.Base(outside) + `/a\b.tif`}
	resolve := func() (list []string) {
		for _, name := range names {
			list = append(list, Resolve(roots, root, name))
		}
		return list
	}
	before := resolve()
	testfile.Write(t, filepath.Join(outside, "there.tar", "a.tif"), nil)
	testfile.Write(t, filepath.Join(outside, `a\b.tif`), nil)
	if after := resolve(); !slices.Equal(after, before) {
		t.Errorf("%q, and %q once the files exist", before, after)
	}
	testfile.Write(t, filepath.Join(root, "there.tar", "a.tif"), nil)
	if name := root + "/there.tar/a.tif"; Resolve(roots, root, name) != name {
		t.Errorf("%s is not the file below a directory that is named as a tar", name)
	}
}
