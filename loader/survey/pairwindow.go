package survey

import (
	"context"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/stats/shift"
	"github.com/chaski-eo/chaski/store/catalog"
)

const (
	// pairSide is the longest side of the windows that are compared, in pixels. 512 pixels leave shifts of 100
	// along both axes two thirds of the window.
	pairSide = 512
	// pairFine is the longest side, in pixels, of the part that is read of the finer raster of a pair: four bands of
	// 1024 × 1024 pixels as float32, with their validity, take 20 MB for each worker.
	pairFine = 1024
	// pairBands is how many bands of a raster are compared. More show the same edges.
	pairBands = 4
	// maxClasses is the number of different values up to which a band is taken for classes, as package draw does.
	maxClasses = 24
)

// grid is the pixels of the coarser of two rasters, along each axis.
type grid struct {
	h, w         int // of the whole raster
	sideY, sideX int // of a window
}

// commonGrid returns the grid of a pair, and reports whether there is one.
func commonGrid(a, b *chunk.Index) (grid, bool) {
	g := grid{h: min(a.Height, b.Height), w: min(a.Width, b.Width)}
	_, err := pixels.NewRatio(a, b)
	side := func(coarse, fine int) int { return min(coarse, pairSide, max(1, pairFine*coarse/fine)) }
	g.sideY, g.sideX = side(g.h, max(a.Height, b.Height)), side(g.w, max(a.Width, b.Width))
	return g, err == nil
}

// middle returns where the window in the middle begins.
func (g grid) middle() [2]int { return [2]int{(g.h - g.sideY) / 2, (g.w - g.sideX) / 2} }

// places returns where windows begin: in the middle and, if that leaves as much again, in the quarters.
func (g grid) places() [][2]int {
	out := [][2]int{g.middle()}
	if g.h < 2*g.sideY && g.w < 2*g.sideX {
		return out
	}
	for i := range 4 {
		out = append(out, [2]int{i / 2 * (g.h - g.sideY), i % 2 * (g.w - g.sideX)})
	}
	return out
}

// window reads the same window of both rasters.
func (w *pairWorker) window(ctx context.Context, a, b catalog.Asset, g grid, at [2]int) (first, other *shift.Raster,
	err error) {
	if first, err = w.side(ctx, a, g, at); err == nil {
		other, err = w.side(ctx, b, g, at)
	}
	return first, other, err
}

// side reads a window of the grid from one raster.
func (w *pairWorker) side(ctx context.Context, a catalog.Asset, g grid, at [2]int) (*shift.Raster, error) {
	index := a.Index
	y0, y1 := at[0]*index.Height/g.h, ((at[0]+g.sideY)*index.Height+g.h-1)/g.h
	x0, x1 := at[1]*index.Width/g.w, ((at[1]+g.sideX)*index.Width+g.w-1)/g.w
	win := shuffle.Box{Y: y0, X: x0, H: y1 - y0, W: x1 - x0}
	bands := evenly(index.StepBands(), pairBands)
	sub := &pixels.Raster{Field: spec.Field{}, PickedBands: pixels.PickedBands{Picked: bands}, H: win.H, W: win.W}
	sub.PlaceBands()
	plan, err := pixels.Planes.Plan(sub.Axes(1), nil)
	if err != nil {
		return nil, err
	}
	convs := &pixels.Converters{Base: einops.Convert{From: index.DType, To: chunk.Float32}, Nodata: true}
	cv, err := convs.Get(index)
	if err != nil { // of complex numbers
		return nil, a.Fault(fault.Wrap(fault.Unsupported, "asset", fault.NoOffset, err))
	}
	reader := w.reader
	resampler := &reader.Resample
	resampler.In, resampler.InValid = pixels.Grown(resampler.In, 4*plan.Len()), pixels.Grown(resampler.InValid,
		plan.Len())
	row := &pixels.Row{Field: sub, Plan: plan, Dst: einops.Target{Data: resampler.In, Mask: resampler.InValid}, Cv: cv,
		Win: win}
	box := pixels.Inside(win, index.Height, index.Width)
	if err := reader.Read(ctx, a, box, bands, row, row.Masked(convs, box)); err != nil {
		return nil, err
	}
	out := &shift.Raster{Height: win.H, Width: win.W, Bands: make([][]float32, len(bands))}
	n := win.H * win.W
	for b := range out.Bands {
		out.Bands[b] = make([]float32, n)
		for i := range n {
			out.Bands[b][i] = resampler.Float(b*n + i)
		}
	}
	whole := slices.Clone(out.Bands[0])
	for b, band := range out.Bands {
		for i := range band {
			if resampler.InValid[b*n+i] == 0 {
				band[i] = float32(math.NaN())
			}
		}
	}
	if len(bands) == 1 {
		values := distinct(out.Bands[0])
		out.Classes = values <= maxClasses
		if values < 2 { // a mask of one class calls the rest nodata
			out.Bands[0] = whole
		}
	}
	return reduced(out, g.sideY, g.sideX), nil
}

// evenly returns at most most of the numbers below n.
func evenly(n, most int) (list []int) {
	k := min(n, most)
	for i := range k {
		list = append(list, i*n/k)
	}
	return list
}

// distinct returns how many different values a band has, and more than maxClasses if there are more.
func distinct(band []float32) int {
	seen := map[float32]bool{}
	last := float32(math.NaN())
	for _, v := range band {
		if v != last && v == v {
			if seen[v] = true; len(seen) > maxClasses {
				break
			}
			last = v
		}
	}
	return len(seen)
}

// reduced returns a raster with h by w pixels, at most as many as r has: the mean of the pixels of r that each covers,
// or the class in its middle.
func reduced(r *shift.Raster, h, w int) *shift.Raster {
	if r.Height == h && r.Width == w {
		return r
	}
	out := &shift.Raster{Height: h, Width: w, Classes: r.Classes}
	for _, band := range r.Bands {
		small := make([]float32, 0, h*w)
		for y := range h {
			y0, y1 := y*r.Height/h, ((y+1)*r.Height+h-1)/h
			for x := range w {
				x0, x1 := x*r.Width/w, ((x+1)*r.Width+w-1)/w
				if r.Classes {
					small = append(small, band[(y0+y1)/2*r.Width+(x0+x1)/2])
					continue
				}
				sum := float32(0)
				for yy := y0; yy < y1; yy++ {
					for _, v := range band[yy*r.Width+x0 : yy*r.Width+x1] {
						sum += v
					}
				}
				small = append(small, sum/float32((y1-y0)*(x1-x0)))
			}
		}
		out.Bands = append(out.Bands, small)
	}
	return out
}
