package picture

import (
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/picture/npy"
)

// stripBytes is about the size of a chunk of an array: a window reads the rows that it touches and few others, in reads
// that a disk does in one go.
const stripBytes = 256 << 10

// numpy reads the header of a .npy file: an array (rows, columns), or of three axes, whose bands are the last axis if
// that is shorter than the first, and otherwise the first, or of four axes, which are (steps of time, bands, rows,
// columns).
func (h *header) numpy() (*chunk.Index, error) {
	a, err := npy.Parse(h.at)
	if err != nil {
		return nil, err
	}
	dtype, big, ok := a.DType()
	switch {
	case !ok:
		return nil, fault.New(fault.Unsupported, "npy header", 0, "dtype %q: samples are numbers", a.Descr)
	case a.Fortran && len(a.Shape) > 1:
		return nil, fault.New(fault.Unsupported, "npy header", 0,
			"it is in Fortran order, and read in C order: save numpy.ascontiguousarray(a)")
	}
	index, err := array(dtype, a.Shape, int64(a.Size), h.r.Size())
	if index != nil {
		index.BigEndian = big && dtype.Size() > 1
	}
	return index, err
}

// array makes the index of an array whose samples begin at an offset of a file of size bytes.
func array(d chunk.DType, shape []int, off, size int64) (*chunk.Index, error) {
	index := &chunk.Index{DType: d, Codec: chunk.Raw, Predictor: chunk.NoPredictor, Bands: 1, CutEdge: true}
	planes := 1
	switch {
	case len(shape) == 2:
		index.Height, index.Width = shape[0], shape[1]
	case len(shape) == 3 && shape[2] < shape[0]:
		index.Height, index.Width, index.Bands, index.Inner = shape[0], shape[1], shape[2], chunk.YXB
	case len(shape) == 3:
		index.Bands, index.Height, index.Width, planes = shape[0], shape[1], shape[2], shape[0]
	case len(shape) == 4 && shape[3] < shape[1]:
		return nil, fault.New(fault.Unsupported, "array", fault.NoOffset, "its shape is %d: series are (t, b, y, x), "+
			"and its bands seem to be the last axis: save numpy.moveaxis(a, -1, 1)", shape)
	case len(shape) == 4:
		// Of two numbers below 2^31.
		index.Bands, index.Height, index.Width, planes = shape[0]*shape[1], shape[2], shape[3], shape[0]*shape[1]
		if shape[0] > 1 { // an index with steps of time has two of them at least
			index.Times = shape[0]
		}
		if planes > chunk.MaxPlanes {
			return nil, fault.New(fault.Limit, "array", fault.NoOffset,
				"its shape is %d: at most %d steps of time times bands", shape, chunk.MaxPlanes)
		}
	default:
		return nil, fault.New(fault.Unsupported, "array", fault.NoOffset, "its shape is %d: rasters have two axes, "+
			"three with bands, or four with steps of time and bands", shape)
	}
	line := int64(d.Size())
	for _, n := range []int{index.Bands / max(planes, 1), index.Width} {
		if n < 1 || int64(n) > math.MaxInt32 || line > math.MaxInt32 {
			return nil, fault.New(fault.Unsupported, "array", fault.NoOffset, "its shape is %d", shape)
		}
		line *= int64(n) // of three numbers below 2^31: the first two make one below 2^62
	}
	// Sizes are compared before they are multiplied: a header may claim any shape.
	room := (size - off) / line
	empty := index.Height < 1 || planes < 1
	if empty || off > size || int64(index.Height) > room || int64(planes) > room/int64(index.Height) {
		return nil, fault.New(fault.Corrupt, "array", off, "samples of shape %d do not fit into %d bytes", shape,
			size-off)
	}
	index.ChunkB, index.ChunkW = index.Bands/planes, index.Width
	index.ChunkH = int(min(max(stripBytes/line, 1), int64(index.Height)))
	for row := 0; row < index.Height; row += index.ChunkH {
		rows := int64(min(index.ChunkH, index.Height-row))
		for p := range planes {
			before := int64(p)*int64(index.Height) + int64(row)
			index.Ranges = append(index.Ranges, chunk.Range{Off: off + line*before, Len: line * rows})
		}
	}
	return index, nil
}
