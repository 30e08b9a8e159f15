package tiledb

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestImagesAreTheCells: every assignment of axes to the dimensions of every dense array gives images whose
// samples are the array's cells, chunk by chunk of the grid, and whose nodata is the fill value.
func TestImagesAreTheCells(t *testing.T) {
	race.SkipCovered(t)
	rnd := rand.New(rand.NewPCG(8, 9))
	names := map[int][]string{2: {"y x", "x y"}, 3: {"b y x", "n y x", "y x b", "x n y", "y b x"},
		4: {"n b y x", "x y b n", "b n x y"}}
	seen := 0
	for _, l := range lines(t, corpusDir(t)) {
		if l.Schema.Type != "dense" || filepath.Base(l.Path) == "dense_huge_domain" {
			continue
		}
		a := l.open(t)
		s, r := &slow{t, a, map[string][]byte{}}, a.NewReader()
		for _, dims := range names[len(a.Schema.Dims)] {
			m, err := a.Images(0, dims)
			if err != nil {
				if fault.KindOf(err) != fault.Unsupported {
					t.Errorf("%s: %v", l.Path, err)
				}
				continue
			}
			seen++
			g := m.Grid()
			for range 4 {
				i, c := rnd.Int64N(m.Len()), rnd.IntN(g.Across()*g.Down()*g.Groups())
				checkImage(t, m, s, r, dims, i, g.Box(c))
			}
			checkImage(t, m, s, r, dims, m.Len()-1, chunk.Box{B0: g.Bands / 2, B1: g.Bands, Y0: g.Height / 3,
				Y1: g.Height, X0: 0, X1: g.Width - g.Width/3})
			if _, cells, err := a.Shape(a.Schema.Domain()); err != nil ||
				int64(cells) != m.Len()*int64(g.Bands*g.Height*g.Width) {
				t.Errorf("%s as %q: %d images of %d by %d by %d", l.Path, dims, m.Len(), g.Bands, g.Height, g.Width)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d", seen)
	}
}

// checkImage compares a box of an image with the cells of the array.
func checkImage(t *testing.T, m *Images, s *slow, r *Reader, dims string, i int64, b chunk.Box) {
	t.Helper()
	g := m.Grid()
	size := g.DType.Size()
	got := make([]byte, (b.B1-b.B0)*(b.Y1-b.Y0)*(b.X1-b.X0)*size)
	if err := m.Read(context.Background(), r, got, i, b); err != nil {
		t.Fatal(err)
	}
	at := make([]Coord, len(s.a.Schema.Dims))
	for bb := b.B0; bb < b.B1; bb++ {
		for y := b.Y0; y < b.Y1; y++ {
			for x := b.X0; x < b.X1; x++ {
				for k, v := range map[byte]int{'n': int(i), 'b': bb, 'y': y, 'x': x} {
					if d := bytes.IndexByte([]byte(dims), k) / 2; bytes.IndexByte([]byte(dims), k) >= 0 {
						at[d] = s.a.Schema.Dims[d].Domain.Lo + Coord(v)
					}
				}
				if want := s.cell(m.attr, at); !bytes.Equal(got[:size], want) {
					t.Fatalf("%s as %q, image %d, %d %d %d: %x, want %x", s.a.uri, dims, i, bb, y, x, got[:size], want)
				}
				got = got[size:]
			}
		}
	}
}

// TestImagesRefuses promises that an array that is not an image is refused with the reason.
func TestImagesRefuses(t *testing.T) {
	for _, l := range lines(t, corpusDir(t)) {
		a := l.open(t)
		dims := []string{"", "y", "y y", "a b", "n b", "y x", "n b y x q"}
		for _, d := range dims {
			if _, err := a.Images(0, d); err != nil {
				checkFault(t, err, l.uri())
				if strings.Contains(err.Error(), "-1") {
					t.Errorf("%s as %q: %v", l.Path, d, err)
				}
			} else if !a.Schema.Dense || a.Schema.Attrs[0].Values != 1 {
				t.Errorf("%s as %q is accepted", l.Path, d)
			}
		}
	}
}

// TestNoDataIsTheFillValue: a sparse chunk of a grid would be filled as the array's unwritten cells are.
func TestNoDataIsTheFillValue(t *testing.T) {
	for typ := range numOfFormat3 {
		d := typ.Sample()
		if d == chunk.Invalid {
			continue
		}
		x := &chunk.Index{Bands: 1, Height: 1, Width: 1, ChunkB: 1, ChunkH: 1, ChunkW: 1, DType: d,
			Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{}}}
		x.NoData, x.NoDataBits = d.NoData(typ.fill())
		got := make([]byte, d.Size())
		if err := chunk.NewDecoder(nil).Decode(got, nil, x, 0); err != nil {
			t.Fatal(err)
		}
		if d.Size() != typ.Size() || fmt.Sprintf("%x", got) != fmt.Sprintf("%x", typ.fill()) {
			if typ.Real() && x.NoData != nil && *x.NoData != *x.NoData &&
				got[d.Size()-1]&0x7f == typ.fill()[d.Size()-1] {
				continue // a NaN of other bits
			}
			t.Errorf("%v: %x, want %x", typ, got, typ.fill())
		}
	}
}

// TestCovers compares with cells that are counted one by one.
func TestCovers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	t32 := Int32
	span := func(n int64) Interval {
		lo := rnd.Int64N(n)
		return Interval{t32.CoordOf(lo - 2), t32.CoordOf(lo - 2 + rnd.Int64N(n-lo))}
	}
	whole := 0
	for range 3000 {
		a := &Array{}
		for range rnd.IntN(7) {
			a.Fragments = append(a.Fragments, &Fragment{Dense: rnd.IntN(8) > 0, NonEmpty: Box{span(5), span(5)}})
		}
		b := Box{span(5), span(5)}
		want := true
		for y := b[0].Lo; y <= b[0].Hi; y++ {
			for x := b[1].Lo; x <= b[1].Hi; x++ {
				want = want && slices.ContainsFunc(a.Fragments, func(f *Fragment) bool {
					return f.Dense && f.NonEmpty[0].has(y) && f.NonEmpty[1].has(x)
				})
			}
		}
		if got := a.Covers(b); got != want {
			t.Fatalf("%v of %v: %v", b, a.Fragments, got)
		}
		if want {
			whole++
		}
	}
	if whole < 100 {
		t.Errorf("only %d boxes were covered", whole)
	}
}

// TestImagesEndWithTheDomain: a dense fragment may say that it goes on to the end of its last tile,
// past the domain, as TileDB's own library lets it. There are no images, and no cells that are
// merged. One that begins behind the domain is refused.
func TestImagesEndWithTheDomain(t *testing.T) {
	ctx, at := context.Background(), Int32.CoordOf
	path := corpus.Known(t, "ends") // images 0 to 2 are 1, and 3 and 4 are 2
	a := openLocal(t, path, Options{})
	last := a.Fragments[1]
	file := filepath.Join(last.path(), metadataName)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lo, hi int64
		kind   fault.Kind
	}{{5, 5, fault.Corrupt}, {3, 6, fault.Corrupt}, {3, 5, 0}} {
		copy(b[last.foot.start+6:], Int32.store(Int32.store(nil, at(c.lo)), at(c.hi)))
		testfile.Write(t, file, b)
		if a, err = Open(ctx, localFiles(t), path, Options{}); fault.KindOf(err) != c.kind {
			t.Fatalf("%d to %d: %v", c.lo, c.hi, err)
		}
	}
	m, err := a.Images(0, "")
	if err != nil {
		t.Fatal(err)
	}
	if lo, hi := m.Written(); lo != 0 || hi != m.Len() || a.NonEmpty()[0].Hi != at(4) {
		t.Errorf("images %d to %d, of %d", lo, hi, m.Len())
	}
	got := make([]byte, 2)
	if err := m.Read(ctx, a.NewReader(), got, 4, chunk.Box{B1: 1, Y1: 1, X1: 2}); err != nil ||
		!bytes.Equal(got, []byte{2, 2}) {
		t.Errorf("the last image is %v: %v", got, err)
	}
}

// TestImagesOfAnEndlessDomain: a domain along n that has more than the largest int64 of images is
// read where the images are within that of its beginning.
func TestImagesOfAnEndlessDomain(t *testing.T) {
	for k, c := range []struct {
		first uint64
		kind  fault.Kind
	}{{5, 0}, {1 << 62, 0}, {1 << 63, fault.Limit}} {
		path := corpus.Known(t, fmt.Sprint("endless-", k))
		if _, err := openLocal(t, path, Options{Since: 2}).Images(0, ""); err != nil {
			t.Errorf("before anything is written: %v", err)
		}
		a := openLocal(t, path, Options{})
		m, err := a.Images(0, "")
		if fault.KindOf(err) != c.kind {
			t.Errorf("%v: %v", c, err)
		}
		if err != nil {
			continue
		}
		lo, hi := m.Written()
		got := make([]byte, 4)
		if err := m.Read(context.Background(), a.NewReader(), got, hi-1,
			chunk.Box{B1: 1, Y1: 2, X1: 2}); err != nil || !bytes.Equal(got, []byte{5, 6, 7, 8}) ||
			hi-lo != 2 || a.Schema.DimType.Int(m.Coord(lo)) != int64(c.first) {
			t.Errorf("%v: images %d to %d, %v, the first at %d: %v", c, lo, hi, got, m.Coord(lo), err)
		}
	}
}
