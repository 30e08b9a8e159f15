package catalog_test

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// listed returns the list of a catalog of a new directory, of two files or with pairs of two pairs.
func listed(t testing.TB, pairs bool) *build.Listing {
	t.Helper()
	dir := folder.Of(t, "a/1.tif", "a/2.tif", "b/1.tif", "b/2.tif")
	o := build.Options{Base: dir}
	path := filepath.Join(dir, "a")
	if pairs {
		o.Fields = []catalog.Source{{Field: "a", Pattern: "a/{id}.tif"}, {Field: "b", Pattern: "b/{id}.tif"}}
		path = dir
	}
	l, err := build.List(t.Context(), []string{path}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// partOf returns the part of a sample.
func partOf(t testing.TB, l *build.Listing, sample int) []byte {
	t.Helper()
	var b bytes.Buffer
	if skipped, err := l.WritePart(t.Context(), &b, sample, 1); err != nil || len(skipped) > 0 {
		t.Fatal(skipped, err)
	}
	return b.Bytes()
}

// merged merges the parts of one sample each, and returns the number of rows.
func merged(t testing.TB, l *build.Listing, skipped []build.SkippedFile, parts ...[]byte) (int, error) {
	t.Helper()
	return l.Merge(t.Context(), io.Discard, func(yield func(*build.Part, error) bool) {
		for i, b := range parts {
			part := &build.Part{First: i, Count: 1, Skipped: skipped,
				Body: io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))}
			if !yield(part, nil) {
				return
			}
		}
	})
}

// TestHostileParts: parts that are no catalogs, of other samples, or too few are refused with a kind.
func TestHostileParts(t *testing.T) {
	for _, pairs := range []bool{false, true} {
		l := listed(t, pairs)
		a, b := partOf(t, l, 0), partOf(t, l, 1)
		for name, parts := range map[string][][]byte{
			"none": nil, "few": {a}, "empty": {nil, b}, "no catalog": {[]byte(strings.Repeat("x", 100)), b},
			"order": {b, a}, "twice": {a, a}, "torn": {a[:len(a)-9], b},
		} {
			if _, err := merged(t, l, nil, parts...); fault.KindOf(err) == 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n, err := merged(t, l, nil, a, b); err != nil || n != 2 {
			t.Errorf("%d rows, %v", n, err)
		}
		skipped := []build.SkippedFile{{File: 0, Error: "x: header: corrupt"}, {File: 1, Error: "y: header: corrupt"}}
		if _, err := merged(t, l, skipped, a, b); fault.KindOf(err) == 0 {
			t.Errorf("rows and reasons for one file: %v", err)
		}
		if !pairs {
			skipped = skipped[:1]
		}
		_, err := merged(t, l, skipped, nil, nil)
		if fault.KindOf(err) == 0 || !strings.Contains(err.Error(), "x: header") {
			t.Errorf("%v, want the reason of the file that was left out", err)
		}
	}
}

// FuzzPart: any part of a catalog, also of pairs, is refused with a kind, or is merged.
func FuzzPart(f *testing.F) {
	plain, pairs := listed(f, false), listed(f, true)
	second := map[*build.Listing][]byte{plain: partOf(f, plain, 1), pairs: partOf(f, pairs, 1)}
	for _, l := range []*build.Listing{plain, pairs} {
		b := partOf(f, l, 0)
		f.Add(b)
		f.Add(b[:len(b)-9])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for l, other := range second {
			if _, err := merged(t, l, nil, b, other); err != nil && fault.KindOf(err) == 0 {
				t.Fatalf("no kind: %v", err)
			}
		}
	})
}
