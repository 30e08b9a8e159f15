package tiledb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// rowBox is a part of the row.
func rowBox(lo, hi int64) Box {
	return Box{{Int32.CoordOf(0), Int32.CoordOf(0)}, {Int32.CoordOf(lo), Int32.CoordOf(hi)}}
}

// readRow reads a part of the row; cells that nobody wrote are dots.
func readRow(t *testing.T, a *Array, lo, hi int64) string {
	t.Helper()
	r := a.NewReader()
	v, err := r.Dense(context.Background(), 0, rowBox(lo, hi))
	if err != nil {
		t.Fatal(err)
	}
	if w, err := r.Dense(context.Background(), 1, rowBox(lo, hi)); err != nil || !slices.Equal(w.Data, v.Data) {
		t.Errorf("[%d, %d]: cells of any length are %v, of one byte %v: %v", lo, hi, w.Data, v.Data, err)
	}
	return rowText(v.Data)
}

func rowText(cells []byte) string {
	var text []string
	for _, c := range cells {
		if text = append(text, fmt.Sprint(c)); c == 255 {
			text[len(text)-1] = "."
		}
	}
	return strings.Join(text, " ")
}

// What libtiledb 1.6.3 and 2.30 both read of the arrays "row-0", "row-1" and so on of known.zip: rows of ten cells, in
// tiles of five, that are the only image.
var underDense = []map[[2]int64]string{
	{{0, 9}: ". . 50 . 10 51 10 52 . .", {4, 6}: "10 10 10", {5, 5}: "10", {2, 7}: "50 . 10 51 10 52",
		{4, 7}: "10 10 10 52", {4, 8}: "10 10 10 52 .", {0, 5}: ". . 50 . 10 10"},
	{{0, 9}: ". . 50 . 10 51 10 52 . .", {4, 6}: "10 10 10", {4, 7}: "10 10 10 52", {0, 5}: ". . 50 . 10 51"},
	{{0, 9}: "10 10 10 10 10 10 10 10 10 10", {2, 7}: "10 10 10 10 10 10"},
	{{0, 9}: "1 1 50 1 10 60 61 52 62 1", {4, 6}: "10 10 10", {5, 5}: "10", {2, 7}: "50 1 10 51 10 52",
		{4, 7}: "10 10 10 52", {4, 8}: "10 60 61 52 62", {0, 5}: "1 1 50 1 10 10"},
	{{0, 9}: "1 1 50 1 10 51 10 52 62 1", {4, 8}: "10 10 10 52 62", {0, 5}: "1 1 50 1 10 51"},
	{{0, 9}: ". . 50 . 10 51 10 52 . .", {4, 8}: "10 10 10 52 ."},
}

func openRow(t *testing.T, k int) *Array {
	return openLocal(t, corpus.Known(t, fmt.Sprint("row-", k)), Options{})
}

// TestSparseUnderDense: sparse fragments under later dense ones show where TileDB's own library
// lets them show. Windows of an image are cut out of what all of it is.
func TestSparseUnderDense(t *testing.T) {
	ctx := context.Background()
	for k, reads := range underDense {
		a := openRow(t, k)
		for box, want := range reads {
			if got := readRow(t, a, box[0], box[1]); got != want {
				t.Errorf("%d, %v: %s, want %s", k, box, got, want)
			}
		}
		all := reads[[2]int64{0, 9}]
		m, err := a.Images(0, "y x")
		if err != nil {
			t.Fatal(err)
		}
		r := m.Open().(*imageReader)
		for lo := range 10 {
			for hi := lo + 1; hi <= 10; hi++ {
				box := chunk.Box{B1: 1, Y1: 1, X0: lo, X1: hi}
				if hi%2 == 0 {
					if err := r.Ahead(ctx, 0, []chunk.Box{box}); err != nil {
						t.Fatal(err)
					}
				}
				got := make([]byte, hi-lo)
				if err := r.ReadBox(ctx, got, 0, box); err != nil {
					t.Fatal(err)
				}
				if want := strings.Fields(all)[lo:hi]; rowText(got) != strings.Join(want, " ") {
					t.Errorf("%d, window from %d to %d: %s, want %s", k, lo, hi, rowText(got), want)
				}
			}
		}
		if _, err := a.Verify(ctx); err != nil {
			t.Error(err)
		}
	}
}

// TestSparseUnderDenseIsForeseen: the reads of such boxes are those that are made.
func TestSparseUnderDenseIsForeseen(t *testing.T) {
	race.SkipCovered(t)
	ctx := context.Background()
	exactly := 0
	for k := range underDense {
		a := openRow(t, k)
		for lo := range int64(10) {
			for hi := lo; hi < 10; hi++ {
				made, seen := &reads{Store: localFiles(t)}, &reads{}
				b, err := Open(ctx, made, a.uri, Options{})
				if err != nil {
					t.Fatal(err)
				}
				r, p := b.NewReader(), b.NewDryRun()
				if _, err := p.Dense(ctx, 0, rowBox(lo, hi), nil, func(string, int64, int64) {}); err != nil {
					t.Fatal(err) // lists and trees are read now
				}
				made.list, made.n = nil, 0
				if _, err := r.Dense(ctx, 0, rowBox(lo, hi)); err != nil {
					t.Fatal(err)
				}
				exact, err := b.NewDryRun().Dense(ctx, 0, rowBox(lo, hi), nil, seen.note)
				if err != nil || exact && !slices.Equal(seen.list, made.list) || seen.n < made.n {
					t.Errorf("[%d, %d]: foreseen %q, exact %v, read %q: %v", lo, hi, seen.list, exact, made.list, err)
				}
				if exact {
					exactly++
				}
			}
		}
	}
	if exactly < 50 {
		t.Errorf("%d are exact", exactly)
	}
}
