package runs

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
)

// tog returns an index laid out as GDAL's COG driver does: position by position, 8 bytes between.
func tog(bands, down, across, tile int) *chunk.Index {
	x := &chunk.Index{
		Bands: bands, Height: down*tile - 3, Width: across*tile - 5, ChunkB: 1, ChunkH: tile, ChunkW: tile,
		DType: chunk.Uint16, Codec: chunk.Zstd, Predictor: chunk.Horizontal,
		Ranges: make([]chunk.Range, bands*down*across),
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	off := int64(1000)
	for i := range x.Ranges {
		x.Ranges[i] = chunk.Range{Off: off, Len: 1000 + rnd.Int64N(30000)}
		off += x.Ranges[i].Len + 8
	}
	return x
}

// plannedFiles returns indexes of files of several layouts, by name.
func plannedFiles() map[string]*chunk.Index {
	m := map[string]*chunk.Index{"one chunk": tog(1, 1, 1, 16), "one band": tog(1, 7, 9, 16)}
	edit := func(name string, f func(x *chunk.Index, r []chunk.Range)) {
		x := tog(3, 4, 5, 64)
		m[name] = x
		f(x, x.Ranges)
	}
	edit("tog", func(*chunk.Index, []chunk.Range) {})
	edit("pixel-interleaved", func(x *chunk.Index, r []chunk.Range) {
		x.ChunkB, x.Inner, x.Ranges = 3, chunk.YXB, r[:20]
	})
	edit("interleaved steps", func(x *chunk.Index, r []chunk.Range) {
		x.Bands, x.Times, x.ChunkB, x.Inner, x.Ranges = 6, 3, 6, chunk.BYXT, r[:20]
	})
	edit("band-interleaved", func(_ *chunk.Index, r []chunk.Range) {
		off := int64(77)
		for g := range 3 {
			for p := range 20 {
				r[p*3+g].Off = off
				off += r[p*3+g].Len
			}
		}
	})
	edit("sparse", func(_ *chunk.Index, r []chunk.Range) {
		r[0], r[7], r[8], r[59] = chunk.Range{}, chunk.Range{}, chunk.Range{}, chunk.Range{}
	})
	edit("all sparse", func(_ *chunk.Index, r []chunk.Range) { clear(r) })
	edit("one present", func(_ *chunk.Index, r []chunk.Range) { clear(r[:9]); clear(r[10:]) })
	edit("rewritten in place", func(_ *chunk.Index, r []chunk.Range) { r[4].Off, r[30].Off = 1<<40, 3 })
	edit("lengths of 40 bits", func(x *chunk.Index, r []chunk.Range) {
		x.Codec, r[4].Len, r[5].Off = chunk.Raw, 1<<40, 1<<41
	})
	edit("equal lengths, shared", func(_ *chunk.Index, r []chunk.Range) {
		for i := range r {
			r[i] = chunk.Range{Off: 5000, Len: 100}
		}
	})
	edit("ends of the offsets", func(x *chunk.Index, r []chunk.Range) {
		x.Codec, r[0], r[1] = chunk.Raw, chunk.Range{Off: math.MaxInt64 - 1, Len: 1}, chunk.Range{Len: math.MaxInt64}
	})
	return m
}

// checkPlan checks a plan chunk by chunk, the slow way.
func checkPlan(t *testing.T, x *chunk.Index, p *Plan, box chunk.Box, bands []int, maxGap, maxRun int64) {
	t.Helper()
	var want, wantSparse, got []int
	for i := range x.Ranges {
		c := x.Box(i)
		meets := c.Y0 < box.Y1 && box.Y0 < c.Y1 && c.X0 < box.X1 && box.X0 < c.X1 && box.Y0 < box.Y1 && box.X0 < box.X1
		if bands == nil {
			meets = meets && c.B0 < box.B1 && box.B0 < c.B1 && box.B0 < box.B1
		} else {
			meets = meets && slices.ContainsFunc(bands, func(b int) bool { return c.B0 <= b && b < c.B1 })
		}
		switch {
		case meets && x.Ranges[i].Len > 0:
			want = append(want, i)
		case meets:
			wantSparse = append(wantSparse, i)
		}
	}
	last := int64(-1)
	for k, r := range p.Runs {
		if len(r.Chunks) == 0 || x.Ranges[r.Chunks[0]].Off != r.Off {
			t.Errorf("run %d does not start with its first chunk", k)
		}
		if r.Len > maxRun && len(r.Chunks) > 1 {
			t.Errorf("run %d of %d bytes, at most %d", k, r.Len, maxRun)
		}
		end := r.Off
		for _, i := range r.Chunks {
			c := x.Place(i)
			if c.Off < last || c.Off-end > maxGap {
				t.Errorf("run %d: chunk %d at %d after %d, end %d", k, i, c.Off, last, end)
			}
			last, end = c.Off, max(end, c.Off+c.Len)
		}
		if end != r.Off+r.Len {
			t.Errorf("run %d ends at %d, its chunks at %d", k, r.Off+r.Len, end)
		}
		if k > 0 {
			before := p.Runs[k-1]
			if r.Off-before.Off-before.Len <= maxGap &&
				max(before.Off+before.Len, x.Place(r.Chunks[0]).Off+x.Place(r.Chunks[0]).Len)-before.Off <= maxRun {
				t.Errorf("runs %d and %d could be one", k-1, k)
			}
		}
		got = append(got, r.Chunks...)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || !slices.Equal(p.Sparse, wantSparse) {
		t.Errorf("box %v bands %v: chunks %v sparse %v, want %v sparse %v", box, bands, got, p.Sparse, want, wantSparse)
	}
}

func TestPlanReadsWhatTheWindowTouches(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var p Plan
	for name, x := range plannedFiles() {
		t.Run(name, func(t *testing.T) {
			for n := range 300 {
				y0, x0, b0 := rnd.IntN(x.Height+1), rnd.IntN(x.Width+1), rnd.IntN(x.Bands+1)
				box := chunk.Box{
					B0: b0, B1: b0 + rnd.IntN(x.Bands-b0+1), Y0: y0,
					Y1: y0 + rnd.IntN(x.Height-y0+1), X0: x0, X1: x0 + rnd.IntN(x.Width-x0+1),
				}
				var bands []int
				if n%2 == 1 {
					bands = make([]int, rnd.IntN(4))
					for k := range bands {
						bands[k] = rnd.IntN(x.Bands)
					}
				}
				gap, run := int64(rnd.IntN(3)*8), int64(1)<<(10+rnd.IntN(12))
				p.Reset(x, box, bands, gap, run)
				checkPlan(t, x, &p, box, bands, gap, run)
			}
		})
	}
}

// TestPlanMergesAPositionOfATOG: all bands at one position of a TOG are one read.
func TestPlanMergesAPositionOfATOG(t *testing.T) {
	x := tog(13, 4, 4, 64)
	var p Plan
	p.Reset(x, chunk.Box{B0: 0, B1: 13, Y0: 70, Y1: 100, X0: 70, X1: 100}, nil, 8, 1<<30)
	if len(p.Runs) != 1 || len(p.Runs[0].Chunks) != 13 || p.Runs[0].Chunks[0] != 5*13 {
		t.Errorf("runs %+v", p.Runs)
	}
}

func TestPlanReadsOnlyTheNeededBytesOfARawChunk(t *testing.T) {
	x := tog(1, 1, 1, 16)
	x.Codec, x.Predictor, x.Ranges[0].Len = chunk.Raw, chunk.NoPredictor, 1<<40
	var p Plan
	p.Reset(x, chunk.Box{B0: 0, B1: 1, Y0: 0, Y1: 16, X0: 0, X1: 16}, nil, 0, 1)
	if len(p.Runs) != 1 || p.Runs[0].Len != 512 {
		t.Errorf("runs %+v", p.Runs)
	}
}

func TestPlanNoAlloc(t *testing.T) {
	sorted, shuffled := tog(5, 8, 8, 64), plannedFiles()["band-interleaved"]
	var p Plan
	bands := []int{2, 0, 2}
	for _, x := range []*chunk.Index{sorted, shuffled} {
		box := chunk.Box{B0: 0, B1: 3, Y0: 10, Y1: 200, X0: 10, X1: 200}
		n := testing.AllocsPerRun(50, func() { p.Reset(x, box, nil, 8, 1<<20); p.Reset(x, box, bands, 8, 1<<20) })
		if n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// TestPlanOfBlocks: a plan of blocks has the chunks of a plan of ranges, computed by hand.
func TestPlanOfBlocks(t *testing.T) {
	x := chunk.Index{Bands: 3, Height: 50, Width: 40, ChunkB: 1, ChunkH: 16, ChunkW: 16, DType: chunk.Uint8,
		CutEdge: true, CutRight: true, Blocks: &chunk.Blocks{}}
	var p Plan
	p.Reset(&x, chunk.Box{B0: 0, B1: 3, Y0: 10, Y1: 17, X0: 33, X1: 40}, []int{2, 0}, 0, 1<<20)
	// Rows 0 and 1 of chunks, column 2 of 3: chunks (0*3+2)*3 + band, and (1*3+2)*3 + band.
	if want := []int{6, 8, 15, 17}; !slices.Equal(p.Blocks, want) || len(p.Runs)+len(p.Sparse) > 0 {
		t.Errorf("%v, want %v; runs %v, sparse %v", p.Blocks, want, p.Runs, p.Sparse)
	}
	x.Blocks.Order = [3]uint8{0, 2, 1} // bands slowest, rows fastest
	p.Reset(&x, chunk.Box{B0: 0, B1: 3, Y0: 10, Y1: 17, X0: 31, X1: 40}, []int{2, 0}, 0, 1<<20)
	if want := []int{3, 12, 6, 15, 5, 14, 8, 17}; !slices.Equal(p.Blocks, want) {
		t.Errorf("%v, want %v", p.Blocks, want)
	}
	p.Reset(&x, chunk.Box{}, nil, 0, 1<<20)
	if len(p.Blocks) > 0 {
		t.Errorf("of nothing: %v", p.Blocks)
	}
}
