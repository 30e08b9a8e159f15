package tiledb

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// large writes an array of several fragments that has many times more bytes than small.MaxResult,
// with attributes of fixed and of any length.
func large(t *testing.T, path string) {
	t.Helper()
	ctx, rnd := context.Background(), rand.New(rand.NewPCG(3, 4))
	at := Int32.CoordOf
	p := filter.Pipeline{MaxChunk: 1000, Filters: []filter.Filter{{ID: filter.Zstd, Level: 1}}}
	s := &Schema{Dense: true, TileOrder: ColMajor, CellOrder: ColMajor, Capacity: 50, DimType: Int32,
		Coords: DefaultFilters(), Offsets: DefaultFilters(),
		Dims: []Dim{{Name: "y", Domain: Interval{at(-200), at(199)}, Extent: 20},
			{Name: "x", Domain: Interval{at(1), at(100)}, Extent: 7}},
		Attrs: []Attr{{Name: "a", Type: Float64, Values: 1, Pipeline: p}, {Name: "v", Type: Uint16, Values: VarLen,
			Pipeline: p}, {Name: "c", Type: Uint8, Values: 3, Pipeline: p}}}
	if err := Create(path, s, nil); err != nil {
		t.Fatal(err)
	}
	files := &Files{}
	defer files.Close()
	for _, box := range []Box{{{at(-200), at(100)}, {at(1), at(60)}}, {{at(-13), at(190)}, {at(30), at(100)}},
		{{at(5), at(44)}, {at(3), at(80)}}} {
		a, err := Open(ctx, files, path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		walkBox(box, func([]Coord) { n++ })
		if err := a.WriteDense(ctx, box, interopValues(s, n, rnd.IntN(1000))); err != nil {
			t.Fatal(err)
		}
	}
}

// small is far too little for all of a large array, and enough for any of its tiles.
var small = Options{MaxResult: 52 << 10, MaxTile: 8 << 10}

// TestConsolidateMoreThanMemory: an array that is larger than what may be read at once is
// consolidated, and holds the same.
func TestConsolidateMoreThanMemory(t *testing.T) {
	ctx := context.Background()
	files := &Files{}
	defer files.Close()
	path := filepath.Join(t.TempDir(), "a")
	large(t, path)
	open := func(o Options) *Array {
		a, err := Open(ctx, files, path, o)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	want := everything(t, open(Options{}))
	a := open(small)
	if len(want[0].Data) < 3*int(small.MaxResult) {
		t.Fatalf("only %d bytes", len(want[0].Data))
	}
	if _, err := a.NewReader().Dense(ctx, 0, a.Schema.Domain()); fault.KindOf(err) != fault.Limit {
		t.Fatalf("all of it is read at once: %v", err)
	}
	if err := a.Consolidate(ctx); err != nil {
		t.Fatal(err)
	}
	a = open(Options{})
	if len(a.Fragments) != 1 || !reflect.DeepEqual(everything(t, a), want) {
		t.Errorf("%d fragments, or other cells", len(a.Fragments))
	}
	if _, err := a.Verify(ctx); err != nil {
		t.Error(err)
	}
}

// TestConsolidateFarApart: fragments in corners of a vast domain bound more tiles than there is memory to list.
func TestConsolidateFarApart(t *testing.T) {
	ctx := context.Background()
	files := &Files{}
	defer files.Close()
	path := filepath.Join(t.TempDir(), "a")
	at := Int64.CoordOf
	s := &Schema{Dense: true, Capacity: 1, DimType: Int64, Coords: DefaultFilters(), Offsets: DefaultFilters(),
		Dims:  []Dim{{Name: "x", Domain: Interval{at(0), at(1 << 60)}, Extent: 4}},
		Attrs: []Attr{{Name: "a", Type: Int8, Values: 1, Pipeline: DefaultFilters()}}}
	if err := Create(path, s, nil); err != nil {
		t.Fatal(err)
	}
	for _, x := range []int64{0, 1 << 59} {
		a, err := Open(ctx, files, path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.WriteDense(ctx, Box{{at(x), at(x + 7)}}, []Values{{Data: make([]byte, 8)}}); err != nil {
			t.Fatal(err)
		}
	}
	a, err := Open(ctx, files, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Consolidate(ctx); fault.KindOf(err) != fault.Limit {
		t.Error(err)
	}
}

// TestConsolidateDamaged: whatever is wrong with a byte of a fragment, consolidation says so in an
// error with a kind and leaves the fragments, or makes one.
func TestConsolidateDamaged(t *testing.T) {
	ctx, rnd := context.Background(), rand.New(rand.NewPCG(5, 6))
	files := &Files{}
	defer files.Close()
	refused, cases := 0, 25
	if testing.Short() { // all of them run the same goroutines
		cases = 8
	}
	whole := filepath.Join(t.TempDir(), "whole")
	timed(t, whole, true)
	for range cases {
		path := filepath.Join(t.TempDir(), "a")
		if err := os.CopyFS(path, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		list, _ := filepath.Glob(filepath.Join(path, "__*", "*.tdb"))
		name := list[rnd.IntN(len(list))]
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b[rnd.IntN(len(b))] ^= byte(1 + rnd.IntN(255))
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := Open(ctx, files, path, small)
		before, _ := filepath.Glob(filepath.Join(path, "*"))
		if err == nil {
			err = a.Consolidate(ctx)
		}
		after, _ := filepath.Glob(filepath.Join(path, "*"))
		hidden, _ := filepath.Glob(filepath.Join(path, ".*"))
		switch {
		case len(hidden) > 0:
			t.Errorf("%s: %q is left", name, hidden)
		case err == nil && len(after) >= len(before):
			t.Errorf("%s: %q after consolidation", name, after)
		case err != nil && (fault.KindOf(err) == 0 || !reflect.DeepEqual(before, after)):
			t.Errorf("%s: %v; %q, before %q", name, err, after, before)
		case err != nil:
			refused++
		}
	}
	if refused < cases/3 {
		t.Errorf("only %d of the damaged arrays were refused", refused)
	}
}
