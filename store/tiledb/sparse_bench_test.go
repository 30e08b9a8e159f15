package tiledb_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// BenchmarkPoints reads boxes of a sparse array of 400,000 points, some 6,000 points a box.
func BenchmarkPoints(b *testing.B) {
	ctx, t := context.Background(), tiledb.Int32
	path := os.Getenv("CHASKI_TILEDB_BENCH")
	if path == "" {
		path = filepath.Join(b.TempDir(), "chips")
	}
	path += "-points"
	if !tiledb.IsArray(path) {
		dim := tiledb.Dim{Domain: tiledb.Interval{Lo: t.CoordOf(0), Hi: t.CoordOf(99999)}, Extent: 1000}
		s := &tiledb.Schema{Capacity: 10000, DimType: t, Coords: tiledb.DefaultFilters(),
			Offsets: tiledb.DefaultFilters(), Dims: []tiledb.Dim{dim, dim},
			Attrs: []tiledb.Attr{{Name: "label", Type: tiledb.Uint16, Values: 1,
				Pipeline: filter.Pipeline{MaxChunk: 1 << 16,
					Filters: []filter.Filter{{ID: filter.Zstd, Level: 3}}}}}}
		s.Dims[0].Name, s.Dims[1].Name = "y", "x"
		if err := tiledb.Create(path, s); err != nil {
			b.Fatal(err)
		}
		var files tiledb.Files
		defer files.Close()
		a, err := tiledb.Open(ctx, &files, path, tiledb.Options{})
		if err != nil {
			b.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(1, 1))
		seen := map[[2]uint32]bool{}
		var coords, labels []byte
		for len(seen) < 400000 {
			at := [2]uint32{rnd.Uint32N(100000), rnd.Uint32N(100000)}
			if !seen[at] {
				seen[at] = true
				coords = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(coords, at[0]), at[1])
				labels = binary.LittleEndian.AppendUint16(labels, uint16(rnd.Uint32()))
			}
		}
		if err := a.WriteSparse(ctx, coords, []tiledb.Values{{Data: labels}}); err != nil {
			b.Fatal(err)
		}
	}
	var files tiledb.Files
	defer files.Close()
	a, err := tiledb.Open(ctx, &files, path, tiledb.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r, rnd := a.NewReader(), rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	cells := 0
	for b.Loop() {
		y, x := rnd.Int64N(87500), rnd.Int64N(87500)
		c, err := r.Sparse(ctx, []int{0}, tiledb.Box{{Lo: t.CoordOf(y), Hi: t.CoordOf(y + 12499)},
			{Lo: t.CoordOf(x), Hi: t.CoordOf(x + 12499)}})
		if err != nil {
			b.Fatal(err)
		}
		cells += c.N
	}
	b.ReportMetric(float64(cells)/float64(b.N), "cells/op")
}
