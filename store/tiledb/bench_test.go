package tiledb_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
)

const benchChips = 8

// benchArray returns an array (n, b, y, x) of real chips, uint16, zstd and byteshuffle, in tiles of 256 by
// 256 pixels. CHASKI_TILEDB_BENCH names where it is kept for other programs.
func benchArray(b *testing.B) *tiledb.Array {
	b.Helper()
	path := os.Getenv("CHASKI_TILEDB_BENCH")
	if path == "" {
		path = filepath.Join(b.TempDir(), "chips")
	}
	if !tiledb.IsArray(path) {
		makeChips(b, path)
	}
	var files tiledb.Files
	b.Cleanup(func() { files.Close() })
	a, err := tiledb.Open(context.Background(), &files, path, tiledb.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return a
}

func makeChips(b *testing.B, path string) {
	b.Helper()
	raw, err := os.ReadFile(filepath.Join(corpus.Testdata(b), "demo", "coast.tif"))
	if err != nil {
		b.Fatal(err)
	}
	img, err := tiff.Open(context.Background(), &corpus.Mem{B: raw}, tiff.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	one, err := whole.Image(img.Index, raw, 1<<28)
	if err != nil {
		b.Fatal(err)
	}
	var all []byte
	for range benchChips {
		all = append(all, one...)
	}
	t := tiledb.Int32
	dim := func(name string, n, extent int64) tiledb.Dim {
		return tiledb.Dim{Name: name, Domain: tiledb.Interval{Lo: t.CoordOf(0), Hi: t.CoordOf(n - 1)},
			Extent: uint64(extent)}
	}
	s := &tiledb.Schema{Dense: true, Capacity: 10000, DimType: t, Coords: tiledb.DefaultFilters(),
		Offsets: tiledb.DefaultFilters(),
		Dims: []tiledb.Dim{dim("n", benchChips, 1), dim("b", int64(img.Index.Bands), 1),
			dim("y", int64(img.Index.Height), 256), dim("x", int64(img.Index.Width), 256)},
		Attrs: []tiledb.Attr{{Name: "dn", Type: tiledb.Uint16, Values: 1,
			Pipeline: filter.Pipeline{MaxChunk: 1 << 16,
				Filters: []filter.Filter{{ID: filter.ByteShuffle}, {ID: filter.Zstd, Level: 3}}}}}}
	if err := tiledb.Create(path, s); err != nil {
		b.Fatal(err)
	}
	var files tiledb.Files
	defer files.Close()
	a, err := tiledb.Open(context.Background(), &files, path, tiledb.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := a.WriteDense(context.Background(), a.Schema.Domain(), []tiledb.Values{{Data: all}}); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkFull(b *testing.B) {
	a := benchArray(b)
	r := a.NewReader()
	_, cells, err := a.Shape(a.Schema.Domain())
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]byte, 2*cells)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		if err := r.DenseInto(context.Background(), dst, 0, a.Schema.Domain(), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWindow reads all bands of windows of 256 by 256 pixels at random places.
func BenchmarkWindow(b *testing.B) {
	a := benchArray(b)
	r, t := a.NewReader(), a.Schema.DimType
	bands := int64(a.Schema.Dims[1].Domain.Hi-a.Schema.Dims[1].Domain.Lo) + 1
	dst := make([]byte, 2*bands*256*256)
	rnd := rand.New(rand.NewPCG(1, 2))
	span := func(lo, n int64) tiledb.Interval {
		return tiledb.Interval{Lo: t.CoordOf(lo), Hi: t.CoordOf(lo + n - 1)}
	}
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		box := tiledb.Box{span(rnd.Int64N(benchChips), 1), span(0, bands), span(rnd.Int64N(640-255), 256),
			span(rnd.Int64N(640-255), 256)}
		if err := r.DenseInto(context.Background(), dst, 0, box, nil); err != nil {
			b.Fatal(err)
		}
	}
}
