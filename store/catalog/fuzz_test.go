package catalog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// kinded fails if an error has neither a kind nor is the context's.
func kinded(t testing.TB, err error) {
	t.Helper()
	if err != nil && fault.KindOf(err) == 0 && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v has no kind", err)
	}
}

// use opens a table in memory and asks for what a loader asks for.
func use(t *testing.T, name string, b []byte, fields ...Source) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	tab, err := Open(ctx, name, fields, Options{Opener: memory{name, b}, CacheBytes: 1 << 20, Roots: []string{"/"}})
	kinded(t, err)
	if err != nil {
		return
	}
	defer tab.Close()
	if len(tab.Fingerprint()) != 32 {
		t.Fatalf("fingerprint %q", tab.Fingerprint())
	}
	for _, row := range []int64{0, tab.Len() / 2, tab.Len() - 1} {
		if row < 0 || row >= tab.Len() {
			continue
		}
		_, err := tab.ID(ctx, row)
		kinded(t, err)
		for f := range tab.fields {
			v, err := tab.Value(ctx, f, row)
			kinded(t, err)
			if v.Null && (v.Text != "" || v.Int != 0 || v.Float != 0) {
				t.Fatalf("a null of value %+v", v)
			}
			if tab.Kind(f) == Raster {
				a, err := tab.Asset(ctx, f, row)
				kinded(t, err)
				if err == nil && a.Index.Validate(-1, 1<<30) != nil {
					t.Fatalf("row %d: the index is not valid", row)
				}
			}
		}
	}
}

func FuzzCatalog(f *testing.F) {
	small, _ := synthetic(f, 20)
	f.Add(small, "")
	names, _ := filepath.Glob("testdata/*.parquet")
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "path")
		f.Add(b, "class")
	}
	f.Fuzz(func(t *testing.T, b []byte, column string) {
		use(t, "/t.parquet", b, Source{Field: "image", Column: column})
	})
}

func FuzzCSV(f *testing.F) {
	f.Add("image,n\na.tif,1\nb.tif,\n")
	f.Add("\ufeffn,image\n\"a\"\"\",\n")
	f.Fuzz(func(t *testing.T, s string) {
		use(t, "/t.csv", []byte(s), Source{Field: "image"}, Source{Field: "n"})
	})
}

// matchParts is what the same pattern says as a regular expression.
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
		if got := matchParts(pattern, parts); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, parts, got, want)
		}
	})
}

// An id that a pattern finds gives back the path; one that is put in is found.
func TestPatternRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lit := rapid.StringMatching(`[ab/._]{0,4}`)
		p, err := parsePattern(strings.Join(rapid.SliceOfN(lit, 2, 4).Draw(t, "literals"), "{id}"))
		if err != nil {
			t.Fatal(err)
		}
		id := rapid.StringMatching(`[ab/]{1,4}`).Draw(t, "id")
		if got, ok := p.match(p.path(id)); !ok || got != id {
			t.Fatalf("%s: %q found in %s (%v), want %q", p.text, got, p.path(id), ok, id)
		}
		s := rapid.StringMatching(`[ab/._]{0,12}`).Draw(t, "path")
		if got, ok := p.match(s); ok && (got == "" || p.path(got) != s) {
			t.Fatalf("%s: %q found in %s", p.text, got, s)
		}
	})
}
