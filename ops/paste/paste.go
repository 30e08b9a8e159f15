// Package paste puts windows of predictions together to one image: what overlaps is blended. Windows are
// those of a grid (package shuffle, type Grid), float32 in the order (bands, rows, columns).
//
// Not supported: windows of other samplers, and classes that are not given as scores.
package paste

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/tiff"
)

// Blend is how windows that overlap come to one value.
type Blend string

// Blends.
const (
	// Linear weights a pixel by its distances to the edges of its window, so that values pass over from one to
	// the next without a seam: (1 + the distance to the nearer edge of its row) times the same of its column.
	Linear Blend = "linear"
	// Mean gives all windows the same weight.
	Mean Blend = "mean"
)

// Options say what an image is made of.
type Options struct {
	Bands         int          // of a window, 1 to 65,535; with Argmax at most 256
	Height, Width int          // of the image, in pixels
	Grid          shuffle.Grid // of the windows; AlignY and AlignX are 1
	Blend         Blend
	// Argmax makes an image of one band of uint8: the number of the band whose blended value is the
	// greatest, the first of several.
	Argmax bool
	// MaxBytes bounds the memory of the image, in bytes: 8 of each of its samples, and 4 of each of its pixels
	// and of a window's samples. There is no default.
	MaxBytes int64
}

// Image blends the windows of a grid. read fills dst with window number j, counted as Grid.At does; windows
// are asked for in order, so that the sums, in float32, are the same every time. It returns the samples
// in the order (bands, rows, columns), little-endian: float32, or uint8 with Argmax. A pixel of which a window
// has NaN is NaN; with Argmax, NaN is never the greatest.
//
// An image that needs more memory than o.MaxBytes is fault.Limit. Other options that make no sense, such as a grid
// that leaves pixels out, and what read returns are errors without a kind of this package.
func Image(o Options, read func(j int64, dst []float32) error) ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	g := &o.Grid
	pixels := o.Height * o.Width
	sum, weight := make([]float32, o.Bands*pixels), make([]float32, pixels)
	window := make([]float32, o.Bands*g.H*g.W)
	down, across := ramp(g.H, o.Blend), ramp(g.W, o.Blend)
	for j := range g.Count(o.Height, o.Width) {
		if err := read(j, window); err != nil {
			return nil, fmt.Errorf("window %d: %w", j, err)
		}
		b := g.At(j, o.Height, o.Width)
		h, w := min(b.H, o.Height-b.Y), min(b.W, o.Width-b.X)
		for y := range h {
			to := (b.Y+y)*o.Width + b.X
			for x := range w {
				weight[to+x] += float32(down[y] * across[x])
			}
			for k := range o.Bands {
				add(sum[k*pixels+to:][:w], window[(k*g.H+y)*g.W:], across, down[y])
			}
		}
	}
	if o.Argmax {
		return argmax(sum, o.Bands, pixels), nil
	}
	out := make([]byte, 0, 4*len(sum))
	for i, v := range sum {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v/weight[i%pixels]))
	}
	return out, nil
}

func add(to, from, across []float32, down float32) {
	for x := range to {
		to[x] += float32(from[x] * float32(down*across[x]))
	}
}

// ramp returns the weights along a side of n pixels. They are whole numbers.
func ramp(n int, b Blend) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = 1
		if b == Linear {
			out[i] = float32(min(i, n-1-i) + 1)
		}
	}
	return out
}

// argmax returns the greatest band of each pixel. All bands of a pixel have one weight.
func argmax(sum []float32, bands, pixels int) []byte {
	out := make([]byte, pixels)
	for i := range out {
		best := float32(math.Inf(-1))
		for k := range bands {
			if v := sum[k*pixels+i]; v > best {
				best, out[i] = v, byte(k)
			}
		}
	}
	return out
}

func (o *Options) check() error {
	g := &o.Grid
	switch {
	case o.Blend != Linear && o.Blend != Mean:
		return fmt.Errorf("blend %q is neither %q nor %q", o.Blend, Linear, Mean)
	case o.Bands < 1 || o.Bands > math.MaxUint16 || o.Argmax && o.Bands > 256:
		return fmt.Errorf("%d bands", o.Bands)
	case o.Height < 1 || o.Width < 1 || o.Height > chunk.MaxSide || o.Width > chunk.MaxSide:
		return fmt.Errorf("an image of %d by %d pixels", o.Height, o.Width)
	case g.H < 1 || g.W < 1 || g.H > 1<<16 || g.W > 1<<16 || g.StrideY < 1 || g.StrideX < 1 || g.StrideY > g.H || g.StrideX > g.W || g.AlignY != 1 || g.AlignX != 1:
		return fmt.Errorf("a grid of windows of %d by %d pixels every %d by %d leaves pixels out", g.H, g.W, g.StrideY, g.StrideX)
	case !g.Pad && (g.H > o.Height || g.W > o.Width):
		return fmt.Errorf("windows of %d by %d pixels in an image of %d by %d, and the grid does not pad", g.H, g.W, o.Height, o.Width)
	}
	// The sums and the result, four bytes a sample each, and the weights.
	need := 8*float64(o.Bands)*float64(o.Height)*float64(o.Width) + 4*float64(o.Height)*float64(o.Width) + 4*float64(o.Bands)*float64(g.H)*float64(g.W)
	if need > float64(o.MaxBytes) {
		return fault.New(fault.Limit, "image", fault.NoOffset, "(%d, %d, %d) float32 needs %.0f bytes of memory, at most %d", o.Bands, o.Height, o.Width, need, o.MaxBytes)
	}
	return nil
}

// WriteTOG writes what Image returns for o as a TACO optimized GeoTIFF (see tiff.WriteTOG) that lies where geo
// says, compressed by so many workers, at least one.
func WriteTOG(w io.Writer, image []byte, o Options, geo tiff.Geo, workers int) error {
	t := tiff.TOGOptions{Shape: [3]int{o.Bands, o.Height, o.Width}, DType: chunk.Float32, Geo: geo, Workers: max(workers, 1)}
	if o.Argmax {
		t.Shape[0], t.DType = 1, chunk.Uint8
	}
	return tiff.WriteTOG(w, image, t)
}
