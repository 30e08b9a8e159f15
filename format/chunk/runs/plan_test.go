package runs

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tools/testkit/layouts"
)

// wholly returns the places of the chunks of a plan.
func wholly(x *chunk.Index, p *Plan) func(k int) chunk.Range {
	return func(k int) chunk.Range { return x.Place(p.Chunks[k]) }
}

// checkPlan checks a plan chunk by chunk, the slow way.
func checkPlan(t *testing.T, x *chunk.Index, p *Plan, box chunk.Box, bands []int, maxGap, maxRun int64) {
	t.Helper()
	p.Reset(x, box, bands)
	joined := p.Join(p.Chunks, wholly(x, p), maxGap, maxRun)
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
	for k, r := range joined {
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
			before := joined[k-1]
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
	for name, x := range layouts.All() {
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
				checkPlan(t, x, &p, box, bands, gap, run)
			}
		})
	}
}

// TestPlanMergesAPositionOfATOG: all bands at one position of a TOG are one read.
func TestPlanMergesAPositionOfATOG(t *testing.T) {
	x := layouts.TOG(13, 4, 4, 64)
	var p Plan
	p.Reset(x, chunk.Box{B0: 0, B1: 13, Y0: 70, Y1: 100, X0: 70, X1: 100}, nil)
	got := p.Join(p.Chunks, wholly(x, &p), 8, 1<<30)
	if len(got) != 1 || len(got[0].Chunks) != 13 || got[0].Chunks[0] != 5*13 {
		t.Errorf("runs %+v", got)
	}
}

func TestPlanReadsOnlyTheNeededBytesOfARawChunk(t *testing.T) {
	x := layouts.TOG(1, 1, 1, 16)
	x.Codec, x.Predictor, x.Ranges[0].Len = chunk.Raw, chunk.NoPredictor, 1<<40
	var p Plan
	p.Reset(x, chunk.Box{B0: 0, B1: 1, Y0: 0, Y1: 16, X0: 0, X1: 16}, nil)
	if got := p.Join(p.Chunks, wholly(x, &p), 0, 1); len(got) != 1 || got[0].Len != 512 {
		t.Errorf("runs %+v", got)
	}
}

func TestPlanNoAlloc(t *testing.T) {
	sorted, shuffled := layouts.TOG(5, 8, 8, 64), layouts.All()["band-interleaved"]
	var p Plan
	bands := []int{2, 0, 2}
	for _, x := range []*chunk.Index{sorted, shuffled} {
		box := chunk.Box{B0: 0, B1: 3, Y0: 10, Y1: 200, X0: 10, X1: 200}
		n := testing.AllocsPerRun(50, func() {
			for _, list := range [][]int{nil, bands} {
				p.Reset(x, box, list)
				p.Join(p.Chunks, wholly(x, &p), 8, 1<<20)
			}
		})
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
	p.Reset(&x, chunk.Box{B0: 0, B1: 3, Y0: 10, Y1: 17, X0: 33, X1: 40}, []int{2, 0})
	// Rows 0 and 1 of chunks, column 2 of 3: chunks (0*3+2)*3 + band, and (1*3+2)*3 + band.
	if want := []int{6, 8, 15, 17}; !slices.Equal(p.Chunks, want) || len(p.Sparse) > 0 {
		t.Errorf("%v, want %v; sparse %v", p.Chunks, want, p.Sparse)
	}
	x.Blocks.Order = [3]uint8{0, 2, 1} // bands slowest, rows fastest
	p.Reset(&x, chunk.Box{B0: 0, B1: 3, Y0: 10, Y1: 17, X0: 31, X1: 40}, []int{2, 0})
	if want := []int{3, 12, 6, 15, 5, 14, 8, 17}; !slices.Equal(p.Chunks, want) {
		t.Errorf("%v, want %v", p.Chunks, want)
	}
	p.Reset(&x, chunk.Box{}, nil)
	if len(p.Chunks) > 0 {
		t.Errorf("of nothing: %v", p.Chunks)
	}
}
