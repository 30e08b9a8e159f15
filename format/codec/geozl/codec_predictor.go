package geozl

import (
	"encoding/binary"
	"math/bits"

	"github.com/chaski-eo/chaski/format/codec/geozl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/cast"
)

// The header of a predictor is the width of a row in samples and, if there is more than one, the number of
// planes, which are predicted separately. Both have 32 bits; wp_static has its weights between them.

// sampleGrid is the layout of the samples of a predictor: planes of whole rows.
type sampleGrid struct {
	width int // samples per row
	plane int // samples per plane
}

// gridOf reads the number of planes, b, and checks that whole rows of width samples fill each.
func gridOf(c *openzl.Call, width uint32, b []byte, n int) (sampleGrid, error) {
	count := uint32(1)
	if len(b) > 0 {
		count = binary.LittleEndian.Uint32(b)
	}
	if n == 0 {
		return sampleGrid{1, 1}, nil
	}
	if width == 0 || count == 0 || n%int(count) != 0 || n/int(count)%int(width) != 0 {
		return sampleGrid{}, c.Corrupt("%d samples are not %d planes of rows of %d", n, count, width)
	}
	return sampleGrid{int(width), n / int(count)}, nil
}

func predictorGrid(c *openzl.Call, n int) (sampleGrid, error) {
	header := c.Header
	if len(header) != 4 && len(header) != 8 {
		return sampleGrid{}, c.Corrupt("header of %d bytes", len(header))
	}
	return gridOf(c, binary.LittleEndian.Uint32(header), header[4:], n)
}

// predictor undoes one prediction, with a function for samples of 1, 2, 4 and 8 bytes. A function fills dst, planes of
// rows, from the residuals src, which may be the same memory.
type predictor [4]func(dst, src []byte, g sampleGrid)

var (
	deltaW = predictor{of(kernel.DeltaW[uint8]), of(kernel.DeltaW[uint16]), of(kernel.DeltaW[uint32]),
		of(kernel.DeltaW[uint64])}
	deltaN = predictor{of(kernel.DeltaN[uint8]), of(kernel.DeltaN[uint16]), of(kernel.DeltaN[uint32]),
		of(kernel.DeltaN[uint64])}
	planar = predictor{of(kernel.Planar[uint8]), of(kernel.Planar[uint16]), of(kernel.Planar[uint32]),
		of(kernel.Planar[uint64])}
	med = predictor{of(kernel.Med[uint8]), of(kernel.Med[uint16]), of(kernel.Med[uint32]), of(kernel.Med[uint64])}
	avg = predictor{of(kernel.Average[uint8]), of(kernel.Average[uint16]), of(kernel.Average[uint32]),
		of(kernel.Average[uint64])}

	planarZigzag = predictor{of(kernel.PlanarZigzag[uint8]), of(kernel.PlanarZigzag[uint16]),
		of(kernel.PlanarZigzag[uint32]), of(kernel.PlanarZigzag[uint64])}
	medZigzag = predictor{of(kernel.MedZigzag[uint8]), of(kernel.MedZigzag[uint16]),
		of(kernel.MedZigzag[uint32]), of(kernel.MedZigzag[uint64])}
)

// of returns the function that runs f for each plane of rows of width samples.
func of[T kernel.Unsigned](f func(dst, res []T, width int)) func(dst, src []byte, g sampleGrid) {
	return func(dst, src []byte, g sampleGrid) { eachPlane(dst, src, g, f) }
}

// decodeDeltaW undoes a prediction for which planes make no difference; the header leaves them out.
func decodeDeltaW(c *openzl.Call) error {
	if len(c.Header) != 4 {
		return c.Corrupt("header of %d bytes", len(c.Header))
	}
	return deltaW.decode(c)
}

func (p *predictor) decode(c *openzl.Call) error {
	in := c.In[0]
	shape, err := predictorGrid(c, in.Count)
	if err != nil {
		return err
	}
	dst, err := c.Make(0, in.Width, in.Count)
	if err != nil {
		return err
	}
	p.run(dst, in.Data, in.Width, shape)
	return nil
}

// run undoes the prediction of every plane of src, samples of size bytes.
func (p *predictor) run(dst, src []byte, size int, shape sampleGrid) {
	p[bits.TrailingZeros(uint(size))](dst, src, shape)
}

func eachPlane[T kernel.Unsigned](dst, src []byte, g sampleGrid, f func(dst, res []T, width int)) {
	res := cast.Values[T](src)
	cast.Fill(dst, func(out []T) {
		for pos := 0; pos < len(out); pos += g.plane {
			f(out[pos:pos+g.plane], res[pos:pos+g.plane], g.width)
		}
	})
}

// decodeWPStatic undoes a prediction by weights: the header has, after the width of a row, how far
// to shift the weighted sum, and four weights.
func decodeWPStatic(c *openzl.Call) error {
	in, header := c.In[0], c.Header
	if len(header) != 13 && len(header) != 17 {
		return c.Corrupt("header of %d bytes", len(header))
	}
	var weights kernel.Weights
	weights.Shift = uint(header[4])
	for i := range weights.Of {
		weights.Of[i] = int64(int16(binary.LittleEndian.Uint16(header[5+2*i:])))
	}
	if weights.Shift > 63 {
		return c.Corrupt("shift of %d bits", weights.Shift)
	}
	shape, err := gridOf(c, binary.LittleEndian.Uint32(header), header[13:], in.Count)
	if err != nil {
		return err
	}
	dst, err := c.Make(0, in.Width, in.Count)
	if err != nil {
		return err
	}
	run := cast.ByWidth(in.Width, weighted[uint8], weighted[uint16], weighted[uint32], weighted[uint64])
	run(dst, in.Data, shape, weights)
	return nil
}

func weighted[T kernel.Unsigned](dst, src []byte, shape sampleGrid, weights kernel.Weights) {
	eachPlane(dst, src, shape, func(out, res []T, width int) { kernel.WPStatic(out, res, width, &weights) })
}
