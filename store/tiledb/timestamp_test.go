package tiledb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// timed writes an array with fragments of the times 10, 20, 30 and 40, and one of 15 to 30 that is
// consolidated of those in between, which are left where they are.
func timed(t *testing.T, path string, dense bool) {
	t.Helper()
	ctx := context.Background()
	s := interopSchema(dense, 0, []filter.ID{filter.Zstd})
	s.Attrs = s.Attrs[:8]
	if err := Create(path, s); err != nil {
		t.Fatal(err)
	}
	files := &Files{}
	defer files.Close()
	for n := range 4 {
		a, err := Open(ctx, files, path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		lo := func(d, by int) Coord { return s.Dims[d].Domain.Lo + Coord(by) }
		box := Box{{lo(0, n), lo(0, n+5)}, {lo(1, 2*n), lo(1, 2*n+3)}}
		at := uint64(10 * (n + 1))
		if dense {
			err = a.writeDense(ctx, box, interopValues(s, 24, 100*n), at, at)
		} else {
			var coords []byte
			walkBox(box, func(at []Coord) {
				for _, c := range at {
					coords = s.DimType.store(coords, c)
				}
			})
			err = a.writeSparse(ctx, coords, interopValues(s, 24, 100*n), at, at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a, err := Open(ctx, files, path, Options{Since: 15, Until: 30})
	if err != nil {
		t.Fatal(err)
	}
	a.o.Since, a.o.Until = 0, 0 // it may write
	if dense {
		err = joinDense(ctx, a, 15, 30)
	} else {
		err = joinSparse(ctx, a, 15, 30)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// joinDense writes the cells of a dense array as one fragment, which hides the fragments of this range of time.
func joinDense(ctx context.Context, a *Array, from, to uint64) error {
	box := a.NonEmpty()
	values := make([]Values, len(a.Schema.Attrs))
	for i := range values {
		var err error
		if values[i], err = a.NewReader().Dense(ctx, i, box); err != nil {
			return err
		}
	}
	return a.writeDense(ctx, box, values, from, to)
}

// joinSparse writes the cells of a sparse array as one fragment, which hides the fragments of this range
// of time.
func joinSparse(ctx context.Context, a *Array, from, to uint64) error {
	cells, err := a.NewReader().Sparse(ctx, sequence(len(a.Schema.Attrs)), a.Schema.Domain())
	if err != nil {
		return err
	}
	return a.writeSparse(ctx, cells.Coords, cells.Values, from, to)
}

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
		path := filepath.Join(t.TempDir(), "all")
		timed(t, path, dense)
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
		path := filepath.Join(t.TempDir(), "all")
		timed(t, path, dense)
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
