// Package paste assembles predictions for windows into one image and blends windows that overlap. The windows form a
// grid over a scene (shuffle.Grid), or lie anywhere on a grid on the ground; a prediction is float32 in the order
// (bands, rows, columns).
//
// Windows come from the top to the bottom, so only the rows that the next ones may reach are held: the memory depends
// on the width of the image, not on its height.
//
// Not supported: windows of other samplers, and classes that are not given as one score for each class.
package paste

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
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
	// Overviews writes versions of half, a quarter, … of the sides, until one has 512 pixels at most: the mean of four
	// pixels, or the class that most of them have, without nodata.
	Overviews bool
	// Classes are the names and colours of the numbers from 0 on, with Argmax.
	Classes chunk.Legend
	// MaxBytes is the memory that is used, in bytes: see bytes. There is no default.
	MaxBytes int64
}

// Image blends the windows of a grid. read fills dst with window j, numbered like Grid.At. Image reads the windows in
// order, so the float32 sums are the same every time. It calls emit with the rows of the image from the top to the
// bottom, 512 at a time, in the order (bands, rows, columns), little-endian: float32, or uint8 with Argmax. emit may
// change them. A pixel is NaN if one of its windows has NaN there; with Argmax, NaN is never the largest, and a pixel
// of NaN in all bands is 255.
//
// Sizes that need more memory than o.MaxBytes have the kind fault.Limit. Errors about other options, such as a grid
// that leaves pixels out, have no kind, and errors of read and emit keep theirs.
func Image(o Options, read func(j int64, dst []float32) error, emit func(y, rows int, strip []byte) error) error {
	if err := o.check(); err != nil {
		return err
	}
	grid, blender := &o.Grid, newBlender(&o, emit)
	for j := range grid.Count(o.Height, o.Width) {
		if err := read(j, blender.window); err != nil {
			return fmt.Errorf("window %d: %w", j, err)
		}
		window := grid.At(j, o.Height, o.Width)
		if err := blender.put(window.Y, window.X); err != nil {
			return err
		}
	}
	return blender.end()
}

// noClass is the value of pixels that lack a number or a window, in an image of classes.
const noClass = 255

// stripRows is how many rows are emitted at a time: as many as a tile of a TOG has.
const stripRows = 512

// windowBlender holds the weighted sums of the rows of an image that windows may still reach.
type windowBlender struct {
	o            *Options
	emit         func(y, rows int, strip []byte) error
	first, count int       // the rows [first, first+count) of the image are held
	sum, weight  []float32 // (bands, count, width) and (count, width)
	window       []float32 // that put adds
	down, across []float32 // weights along the sides of a window
	strip        []byte    // that was emitted
}

// newBlender returns an empty image for options that check accepts.
func newBlender(o *Options, emit func(y, rows int, strip []byte) error) *windowBlender {
	grid, held := &o.Grid, o.heldRows()
	return &windowBlender{
		o: o, emit: emit, count: held,
		sum: make([]float32, o.Bands*held*o.Width), weight: make([]float32, held*o.Width),
		window: make([]float32, o.Bands*grid.H*grid.W), down: ramp(grid.H, o.Blend), across: ramp(grid.W, o.Blend),
	}
}

// heldRows returns how many rows are held: as many as a window has that begins in the last row of a strip.
func (o *Options) heldRows() int { return min(o.Height, stripRows+o.Grid.H) }

// put adds the window whose upper left pixel lies at a row and a column of the image, as far as it lies in the image.
// It emits the strips above it, which no later window may reach.
func (b *windowBlender) put(row, column int) error {
	grid, plane := &b.o.Grid, b.count*b.o.Width
	y0, y1 := max(0, -row), min(grid.H, b.o.Height-row)
	x0, x1 := max(0, -column), min(grid.W, b.o.Width-column)
	if x0 >= x1 || y0 >= y1 {
		return nil
	}
	for b.first+stripRows <= row {
		if err := b.flush(stripRows); err != nil {
			return err
		}
	}
	if row+y0 < b.first {
		return fault.New(fault.Unsupported, "windows", "one begins in row %d, after one in row %d or "+
			"below: they must come from the top to the bottom", row, b.first)
	}
	for y := y0; y < y1; y++ {
		end := (row+y-b.first)*b.o.Width + column
		for x := x0; x < x1; x++ {
			b.weight[end+x] += float32(b.down[y] * b.across[x])
		}
		for k := range b.o.Bands {
			add(b.sum[k*plane+end+x0:][:x1-x0], b.window[(k*grid.H+y)*grid.W+x0:], b.across[x0:], b.down[y])
		}
	}
	return nil
}

// end emits the rows that are left.
func (b *windowBlender) end() error {
	for b.first < b.o.Height {
		if err := b.flush(min(stripRows, b.o.Height-b.first)); err != nil {
			return err
		}
	}
	return nil
}

// flush emits the first rows that are held, and makes room for as many.
func (b *windowBlender) flush(rows int) error {
	n, plane := rows*b.o.Width, b.count*b.o.Width
	if err := b.emit(b.first, rows, b.values(n)); err != nil {
		return err
	}
	for k := range b.o.Bands {
		slide(b.sum[k*plane:][:plane], n)
	}
	slide(b.weight, n)
	b.first += rows
	return nil
}

// slide moves a plane up by n values.
func slide(plane []float32, n int) { clear(plane[copy(plane, plane[n:]):]) }

// values returns the blended values of the first n pixels that are held. Pixels that no window has are NaN, or noClass.
func (b *windowBlender) values(n int) []byte {
	plane := len(b.weight)
	if b.o.Argmax {
		b.strip = argmax(b.strip, b.sum, b.o.Bands, plane, n)
		for i, w := range b.weight[:n] {
			if w == 0 {
				b.strip[i] = noClass
			}
		}
		return b.strip
	}
	b.strip = b.strip[:0]
	for k := range b.o.Bands {
		for i, value := range b.sum[k*plane:][:n] {
			value /= b.weight[i]
			if b.weight[i] == 0 {
				// Not 0 / 0, because its bits differ between processors.
				value = float32(math.NaN())
			}
			b.strip = binary.LittleEndian.AppendUint32(b.strip, math.Float32bits(value))
		}
	}
	return b.strip
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

// argmax writes the band with the largest sum for each of the first n pixels into out, noClass if all are NaN. It needs
// no weights, because all bands of a pixel have the same. plane is the distance of two bands of a pixel.
func argmax(out []byte, sum []float32, bands, plane, n int) []byte {
	out = slices.Grow(out[:0], n)[:n]
	for i := range out {
		best := float32(math.NaN())
		out[i] = noClass
		for k := range bands {
			if v := sum[k*plane+i]; v > best || v == v && best != best {
				best, out[i] = v, byte(k)
			}
		}
	}
	return out
}

func (o *Options) check() error {
	if err := o.checkLegend(); err != nil {
		return err
	}
	grid := &o.Grid
	switch {
	case o.Blend != Linear && o.Blend != Mean:
		return fmt.Errorf("blend is %q: it must be %q or %q", o.Blend, Linear, Mean)
	case o.Argmax && o.Bands > noClass:
		return fmt.Errorf("bands is %d: it must be at most %d with argmax, where %d is nodata", o.Bands, noClass,
			noClass)
	case o.Argmax && o.Bands == 1:
		return errors.New("bands is 1: the largest of one band is 0 everywhere. argmax needs a band for each class, " +
			"as 1 - p and p of a probability p")
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
		return fault.New(fault.Limit, "image", "%d bands of %d columns, of which %d rows are held, need %.0f bytes of "+
			"memory: max_bytes is %d", o.Bands, o.Width, o.heldRows(), need, o.MaxBytes)
	}
	return nil
}

// bytes returns the memory: four bytes for each sum and weight of the rows that are held, and for each value of a strip
// and of a window; of the overviews, rows that wait have as many values as two strips of half the width, a quarter, ….
func (o *Options) bytes() float64 {
	// As float64, because the product of large sides would overflow an int64.
	bands, width := float64(o.Bands), float64(o.Width)
	strips := 1.0
	if o.Overviews {
		strips += 2
	}
	return 4*(bands+1)*width*float64(o.heldRows()) + 4*bands*width*stripRows*strips +
		4*bands*float64(o.Grid.H)*float64(o.Grid.W)
}

// togOptions returns how the image is written.
func (o *Options) togOptions(geo tiff.Geo, workers int) tog.Options {
	options := tog.Options{Shape: [3]int{o.Bands, o.Height, o.Width}, DType: chunk.Float32, Geo: geo,
		Workers: max(workers, 1), NoData: "nan"}
	if o.Argmax {
		options.Shape[0], options.DType, options.NoData = 1, chunk.Uint8, strconv.Itoa(noClass)
		o.legend(&options)
	}
	for h, w := o.Height, o.Width; o.Overviews && max(h, w) > stripRows; {
		h, w = (h+1)/2, (w+1)/2
		options.Overviews = append(options.Overviews, tog.Overview{Height: h, Width: w})
	}
	return options
}
