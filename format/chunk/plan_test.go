package chunk

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// checkPlan checks a plan chunk by chunk, the slow way.
func checkPlan(t *testing.T, x *Index, p *RunPlan, box Box, bands []int, maxGap, maxRun int64) {
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
	var p RunPlan
	for name, x := range relatives() {
		t.Run(name, func(t *testing.T) {
			for n := range 300 {
				y0, x0, b0 := rnd.IntN(x.Height+1), rnd.IntN(x.Width+1), rnd.IntN(x.Bands+1)
				box := Box{
					b0, b0 + rnd.IntN(x.Bands-b0+1), y0,
					y0 + rnd.IntN(x.Height-y0+1), x0, x0 + rnd.IntN(x.Width-x0+1),
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
	var p RunPlan
	p.Reset(x, Box{0, 13, 70, 100, 70, 100}, nil, 8, 1<<30)
	if len(p.Runs) != 1 || len(p.Runs[0].Chunks) != 13 || p.Runs[0].Chunks[0] != 5*13 {
		t.Errorf("runs %+v", p.Runs)
	}
}

func TestPlanReadsOnlyTheNeededBytesOfARawChunk(t *testing.T) {
	x := tog(1, 1, 1, 16)
	x.Codec, x.Predictor, x.Ranges[0].Len = Raw, NoPredictor, 1<<40
	var p RunPlan
	p.Reset(x, Box{0, 1, 0, 16, 0, 16}, nil, 0, 1)
	if len(p.Runs) != 1 || p.Runs[0].Len != 512 {
		t.Errorf("runs %+v", p.Runs)
	}
}

func TestPlanNoAlloc(t *testing.T) {
	sorted, shuffled := tog(5, 8, 8, 64), relatives()["band-interleaved"]
	var p RunPlan
	bands := []int{2, 0, 2}
	for _, x := range []*Index{sorted, shuffled} {
		box := Box{0, 3, 10, 200, 10, 200}
		n := testing.AllocsPerRun(50, func() { p.Reset(x, box, nil, 8, 1<<20); p.Reset(x, box, bands, 8, 1<<20) })
		if n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
