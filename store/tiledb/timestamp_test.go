package tiledb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// times are ranges, and the times of the fragments that are in them.
var times = []struct {
	since, until uint64
	in           []string
}{
	{0, 0, []string{"10_10", "15_30", "20_20", "30_30", "40_40"}}, {0, 9, nil}, {0, 10, []string{"10_10"}},
	{0, 25, []string{"10_10", "20_20"}},
	{0, 30, []string{"10_10", "15_30", "20_20", "30_30"}}, {16, 30, []string{"20_20", "30_30"}},
	{15, 39, []string{"15_30", "20_20", "30_30"}},
	{40, 0, []string{"40_40"}}, {20, 20, []string{"20_20"}}, {41, 1 << 40, nil},
}

// TestOpeningAtATime: an array at a time is one with those of the fragments alone that were written by then.
func TestOpeningAtATime(t *testing.T) {
	ctx := context.Background()
	files := &Files{}
	defer files.Close()
	for _, dense := range []bool{true, false} {
		path := corpus.Known(t, map[bool]string{true: "times-dense", false: "times-sparse"}[dense])
		prints := map[string][]string{}
		for i, c := range times {
			alone := filepath.Join(t.TempDir(), "alone")
			if err := os.Mkdir(alone, 0o777); err != nil {
				t.Fatal(err)
			}
			list, _ := filepath.Glob(filepath.Join(path, "__*"))
			for _, p := range list {
				name := filepath.Base(p)
				s, err := parseName(name)
				if err == nil && !slices.Contains(c.in, fmt.Sprintf("%d_%d", s.from, s.to)) {
					continue
				}
				if err := os.Symlink(p, filepath.Join(alone, name)); err != nil {
					t.Fatal(err)
				}
			}
			want, err := Open(ctx, files, alone, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := Open(ctx, files, path, Options{Since: c.since, Until: c.until})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Fragments)+len(got.Hidden) != len(c.in) || got.Fingerprint() != want.Fingerprint() {
				t.Errorf("dense %t, %d to %d: %d and %d fragments, want %q", dense, c.since, c.until,
					len(got.Fragments), len(got.Hidden), c.in)
			}
			prints[got.Fingerprint()] = append(prints[got.Fingerprint()], fmt.Sprint(i))
			if a, b := everything(t, got), everything(t, want); !reflect.DeepEqual(a, b) {
				t.Errorf("dense %t, %d to %d: other cells than of the fragments alone", dense, c.since, c.until)
			}
		}
		// Nothing there, and 15 to 30 hides what lies in it: those are the same.
		if len(prints) != len(times)-1 {
			t.Errorf("dense %t: fingerprints %v", dense, prints)
		}
	}
}

// everything reads all cells.
func everything(t *testing.T, a *Array) (values []Values) {
	t.Helper()
	r, ctx := a.NewReader(), context.Background()
	if !a.Schema.Dense {
		attrs := make([]int, len(a.Schema.Attrs))
		for i := range attrs {
			attrs[i] = i
		}
		c, err := r.Sparse(ctx, attrs, a.Schema.Domain())
		if err != nil {
			t.Fatal(err)
		}
		return append(c.Values, Values{Data: c.Coords})
	}
	for i := range a.Schema.Attrs {
		v, err := r.Dense(ctx, i, a.Schema.Domain())
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return values
}

// TestTileDBOpensAtTheSameTime: libtiledb, the newest from PyPI, opened at a time reads what is read here.
func TestTileDBOpensAtTheSameTime(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON_TILEDB")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON_TILEDB names no Python with tiledb")
	}
	var reads []oracleRead
	var wants []oracleResult
	files := &Files{}
	defer files.Close()
	for _, dense := range []bool{true, false} {
		path := corpus.Known(t, map[bool]string{true: "times-dense", false: "times-sparse"}[dense])
		for _, c := range times {
			if c.until == 0 { // there is no such range to ask for
				continue
			}
			a, err := Open(context.Background(), files, path, Options{Since: c.since, Until: c.until})
			if err != nil {
				t.Fatal(err)
			}
			r, w := ownBox(t, a, nil, a.Schema.Domain())
			if dense || r.Cells > 0 {
				reads, wants = append(reads, r), append(wants, w)
			}
		}
	}
	askOracle(t, python, reads, wants)
}
