package tiledb

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// dense or sparse cells of a row of ten: places of single cells, or the first and the last one of a range.
type rowWrite struct {
	dense bool
	at    []int64
	value byte // of the first cell; those of single cells count up
}

// writeRow makes a row of ten cells, in tiles of five, as the only image of an array.
func writeRow(t *testing.T, capacity uint64, writes []rowWrite) *Array {
	t.Helper()
	ctx, path, files := context.Background(), filepath.Join(t.TempDir(), "a"), localFiles(t)
	at := Int32.CoordOf
	s := &Schema{Dense: true, Capacity: capacity, DimType: Int32, Coords: DefaultFilters(), Offsets: DefaultFilters(),
		Dims: []Dim{{Name: "y", Domain: Interval{at(0), at(0)}, Extent: 1},
			{Name: "x", Domain: Interval{at(0), at(9)}, Extent: 5}},
		Attrs: []Attr{{Name: "a", Type: Uint8, Values: 1, Pipeline: DefaultFilters()},
			{Name: "v", Type: Uint8, Values: VarLen, Pipeline: DefaultFilters()}}}
	if err := Create(path, s); err != nil {
		t.Fatal(err)
	}
	open := func() *Array {
		a, err := Open(ctx, files, path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for k, w := range writes {
		var v Values
		var coords []byte
		n := len(w.at)
		if w.dense {
			n = int(w.at[1]-w.at[0]) + 1
		}
		for i := range n {
			cell := w.value
			if !w.dense {
				cell += byte(i)
				coords = Int32.store(Int32.store(coords, at(0)), at(w.at[i]))
			}
			v.Offsets, v.Data = append(v.Offsets, uint64(i)), append(v.Data, cell)
		}
		var err error
		values, time := []Values{{Data: v.Data}, v}, uint64(10*(k+1))
		if w.dense {
			err = open().writeDense(ctx, rowBox(w.at[0], w.at[1]), values, time, time)
		} else {
			err = open().writeSparse(ctx, coords, values, time, time)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return open()
}

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

// The writes, by the capacity of tiles, and what libtiledb 1.6.3 and 2.30 both read of them.
var underDense = []struct {
	capacity uint64
	writes   []rowWrite
	reads    map[[2]int64]string
}{
	{100, []rowWrite{{false, []int64{2, 5, 7}, 50}, {true, []int64{4, 6}, 10}}, map[[2]int64]string{
		{0, 9}: ". . 50 . 10 51 10 52 . .", {4, 6}: "10 10 10", {5, 5}: "10", {2, 7}: "50 . 10 51 10 52",
		{4, 7}: "10 10 10 52", {4, 8}: "10 10 10 52 .", {0, 5}: ". . 50 . 10 10"}},
	{2, []rowWrite{{false, []int64{2, 5, 7}, 50}, {true, []int64{4, 6}, 10}}, map[[2]int64]string{
		{0, 9}: ". . 50 . 10 51 10 52 . .", {4, 6}: "10 10 10", {4, 7}: "10 10 10 52", {0, 5}: ". . 50 . 10 51"}},
	{100, []rowWrite{{false, []int64{2, 5, 7}, 50}, {true, []int64{0, 9}, 10}}, map[[2]int64]string{
		{0, 9}: "10 10 10 10 10 10 10 10 10 10", {2, 7}: "10 10 10 10 10 10"}},
	{100, []rowWrite{{true, []int64{0, 9}, 1}, {false, []int64{2, 5, 7}, 50}, {false, []int64{5, 6, 8}, 60},
		{true, []int64{4, 6}, 10}}, map[[2]int64]string{
		{0, 9}: "1 1 50 1 10 60 61 52 62 1", {4, 6}: "10 10 10", {5, 5}: "10", {2, 7}: "50 1 10 51 10 52",
		{4, 7}: "10 10 10 52", {4, 8}: "10 60 61 52 62", {0, 5}: "1 1 50 1 10 10"}},
	{2, []rowWrite{{true, []int64{0, 9}, 1}, {false, []int64{2, 5, 7}, 50}, {false, []int64{5, 6, 8}, 60},
		{true, []int64{4, 6}, 10}}, map[[2]int64]string{
		{0, 9}: "1 1 50 1 10 51 10 52 62 1", {4, 8}: "10 10 10 52 62", {0, 5}: "1 1 50 1 10 51"}},
	{100, []rowWrite{{false, []int64{2, 5, 7}, 50}, {false, []int64{5, 6}, 60}, {true, []int64{4, 6}, 10}},
		map[[2]int64]string{
			{0, 9}: ". . 50 . 10 51 10 52 . .", {4, 8}: "10 10 10 52 ."}},
}

// TestSparseUnderDense: sparse fragments under later dense ones show where TileDB's own library
// lets them show. Windows of an image are cut out of what all of it is.
func TestSparseUnderDense(t *testing.T) {
	ctx := context.Background()
	for k, c := range underDense {
		a := writeRow(t, c.capacity, c.writes)
		for box, want := range c.reads {
			if got := readRow(t, a, box[0], box[1]); got != want {
				t.Errorf("%d, %v: %s, want %s", k, box, got, want)
			}
		}
		all := c.reads[[2]int64{0, 9}]
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
	for _, c := range underDense {
		a := writeRow(t, c.capacity, c.writes)
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
