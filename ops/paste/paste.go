// Package paste assembles predictions for windows into one image and blends windows that overlap. The windows form a
// grid over a scene (shuffle.Grid), or lie anywhere on a grid on the ground; a prediction is float32 in the order
// (bands, rows, columns).
//
// Not supported: windows of other samplers, and classes that are not given as one score for each class.
package paste

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/tiff"
)

// Blend says how to combine windows that overlap.
type Blend string

// Blends.
const (
	// Linear weights a pixel by its distances to the edges of its window, so there are no seams: (1 + the
	// distance to the nearer edge along its row) times the same along its column.
	Linear Blend = "linear"
	// Mean gives all windows the same weight.
	Mean Blend = "mean"
)

// Options describe the image and the windows.
type Options struct {
	Bands         int          // of a window, 1 to 65,535; at most 255 with Argmax, where 255 is nodata
	Height, Width int          // of the image, in pixels
	Grid          shuffle.Grid // of the windows; AlignY and AlignX must be 1
	Blend         Blend
	// Argmax makes an image of one uint8 band: the number of the band with the largest blended value, the first
	// one if several are equal.
	Argmax bool
	// MaxBytes is the memory for the image, in bytes: 8 for each value of the image, 4 for each pixel and 4 for
	// each value of one window. There is no default.
	MaxBytes int64
}

// Image blends the windows of a grid. read fills dst with window j, numbered like Grid.At. Image reads the windows
// in order, so the float32 sums are the same every time. It returns the values in the order (bands, rows,
// columns), little-endian: float32, or uint8 with Argmax. A pixel is NaN if one of its windows has NaN there; with
// Argmax, NaN is never the largest, and a pixel of NaN in all bands is 255.
//
// An image that needs more memory than o.MaxBytes has the kind fault.Limit. Errors about other options, such as a
// grid that leaves pixels out, have no kind, and errors of read keep theirs.
func Image(o Options, read func(j int64, dst []float32) error) ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	grid, blender := &o.Grid, newBlender(&o)
	for j := range grid.Count(o.Height, o.Width) {
		if err := read(j, blender.window); err != nil {
			return nil, fmt.Errorf("window %d: %w", j, err)
		}
		window := grid.At(j, o.Height, o.Width)
		blender.put(window.Y, window.X)
	}
	return blender.image(), nil
}

// noClass is the value of pixels without a number, or without a window, in an image of classes.
const noClass = 255

// windowBlender holds the weighted sums of the windows of an image.
type windowBlender struct {
	o            *Options
	sum, weight  []float32
	window       []float32 // that put adds
	down, across []float32 // weights along the sides of a window
}

// newBlender returns an empty image for options that check accepts.
func newBlender(o *Options) *windowBlender {
	grid, pixels := &o.Grid, o.Height*o.Width
	return &windowBlender{
		o: o, sum: make([]float32, o.Bands*pixels), weight: make([]float32, pixels),
		window: make([]float32, o.Bands*grid.H*grid.W), down: ramp(grid.H, o.Blend), across: ramp(grid.W, o.Blend),
	}
}

// put adds the window whose upper left pixel lies at a row and a column of the image, as far as it lies in the image.
func (b *windowBlender) put(row, column int) {
	grid, pixels := &b.o.Grid, b.o.Height*b.o.Width
	y0, y1 := max(0, -row), min(grid.H, b.o.Height-row)
	x0, x1 := max(0, -column), min(grid.W, b.o.Width-column)
	if x0 >= x1 {
		return
	}
	for y := y0; y < y1; y++ {
		end := (row+y)*b.o.Width + column
		for x := x0; x < x1; x++ {
			b.weight[end+x] += float32(b.down[y] * b.across[x])
		}
		for k := range b.o.Bands {
			add(b.sum[k*pixels+end+x0:][:x1-x0], b.window[(k*grid.H+y)*grid.W+x0:], b.across[x0:], b.down[y])
		}
	}
}

// image returns the blended values. Pixels that no window has are NaN, or noClass.
func (b *windowBlender) image() []byte {
	pixels := len(b.weight)
	if b.o.Argmax {
		out := argmax(b.sum, b.o.Bands, pixels)
		for i, w := range b.weight {
			if w == 0 {
				out[i] = noClass
			}
		}
		return out
	}
	out := make([]byte, 0, 4*len(b.sum))
	for i, value := range b.sum {
		value /= b.weight[i%pixels]
		if b.weight[i%pixels] == 0 {
			// Not 0 / 0, because its bits differ between processors.
			value = float32(math.NaN())
		}
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(value))
	}
	return out
}

// add adds a row of a window, weighted, to the sums.
func add(to, from, across []float32, down float32) {
	for x := range to {
		// The conversions keep the compiler from fusing multiplication and addition, which would make results differ
		// between processors.
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

// argmax returns the band with the largest sum for each pixel, noClass if all are NaN. It needs no weights, because all
// bands of a pixel have the same.
func argmax(sum []float32, bands, pixels int) []byte {
	out := make([]byte, pixels)
	for i := range out {
		best := float32(math.NaN())
		out[i] = noClass
		for k := range bands {
			if v := sum[k*pixels+i]; v > best || v == v && best != best {
				best, out[i] = v, byte(k)
			}
		}
	}
	return out
}

func (o *Options) check() error {
	grid := &o.Grid
	switch {
	case o.Blend != Linear && o.Blend != Mean:
		return fmt.Errorf("blend is %q: it must be %q or %q", o.Blend, Linear, Mean)
	case o.Argmax && o.Bands > noClass:
		return fmt.Errorf("bands is %d: it must be at most %d with argmax, where %d is nodata", o.Bands, noClass,
			noClass)
	case o.Bands < 1 || o.Bands > math.MaxUint16:
		return fmt.Errorf("bands is %d: it must be from 1 to 65535", o.Bands)
	case o.Height < 1 || o.Width < 1 || o.Height > chunk.MaxSide || o.Width > chunk.MaxSide:
		return fmt.Errorf("the image has %d by %d pixels: a side must be from 1 to %d", o.Height,
			o.Width, chunk.MaxSide)
	case min(grid.H, grid.W, grid.StrideY, grid.StrideX) < 1 || max(grid.H, grid.W) > 1<<16 ||
		grid.StrideY > grid.H || grid.StrideX > grid.W || grid.AlignY != 1 || grid.AlignX != 1:
		return fmt.Errorf("a grid of windows of %d by %d pixels every %d by %d leaves pixels out", grid.H, grid.W,
			grid.StrideY, grid.StrideX)
	case !grid.Pad && (grid.H > o.Height || grid.W > o.Width):
		return fmt.Errorf("windows of %d by %d pixels are larger than the image of %d by %d: the grid must pad",
			grid.H, grid.W, o.Height, o.Width)
	}
	if need := o.bytes(); need > float64(o.MaxBytes) {
		return fault.New(fault.Limit, "image", fault.NoOffset,
			"(%d, %d, %d) float32 needs %.0f bytes of memory, at most %d", o.Bands, o.Height, o.Width, need, o.MaxBytes)
	}
	return nil
}

// bytes returns the memory for the image: the sums and the result take four bytes a value each, the weights four bytes
// a pixel.
func (o *Options) bytes() float64 {
	// As float64, because the product of large sides would overflow an int64.
	return 8*float64(o.Bands)*float64(o.Height)*float64(o.Width) + 4*float64(o.Height)*float64(o.Width) +
		4*float64(o.Bands)*float64(o.Grid.H)*float64(o.Grid.W)
}

// togOptions returns how the image is written.
func (o *Options) togOptions(geo tiff.Geo, workers int) tiff.TOGOptions {
	options := tiff.TOGOptions{Shape: [3]int{o.Bands, o.Height, o.Width}, DType: chunk.Float32, Geo: geo,
		Workers: max(workers, 1), NoData: "nan"}
	if o.Argmax {
		options.Shape[0], options.DType, options.NoData = 1, chunk.Uint8, strconv.Itoa(noClass)
	}
	return options
}
