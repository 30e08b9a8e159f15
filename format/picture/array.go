package picture

import (
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
)

// stripBytes is about the size of a chunk of an array: a window reads the rows that it touches and few others, in reads
// that a disk does in one go.
const stripBytes = 256 << 10

// numpy reads the header of a .npy file. dims names the axes of the array as chunk.Axes does; "" leaves them to
// usualAxes.
func (h *header) numpy(dims string) (*chunk.Index, error) {
	a, err := npy.Parse(h.at)
	if err != nil {
		return nil, err
	}
	dtype, big, ok := a.DType()
	switch {
	case !ok:
		return nil, fault.New(fault.Unsupported, "npy header", "dtype %q: samples are numbers", a.Descr)
	case a.Fortran:
		return nil, fault.New(fault.Unsupported, "npy header",
			"it is in Fortran order, and read in C order: save numpy.ascontiguousarray(a)")
	}
	names := strings.Fields(dims)
	if dims == "" {
		names, err = usualAxes(a.Shape)
	} else {
		err = checkAxes(names, a.Shape)
	}
	if err != nil {
		return nil, err
	}
	index, err := array(dtype, names, a.Shape, int64(a.Size), h.r.Size())
	if err != nil {
		return nil, err
	}
	index.BigEndian = big
	index.Picture = dims == "" && len(a.Shape) == 3 && names[0] == "y"
	return index, nil
}

// minSide is the least height and width of an array that is taken for a picture (y, x, b): as (b, y, x) it would have
// at least 32 bands and 32 rows, but 3 or 4 columns, which no chip has.
const minSide = 32

// looksLikePicture reports whether the last three axes of an array have the sizes of a picture (y, x, b).
func looksLikePicture(shape []int) bool {
	last := shape[len(shape)-3:]
	return last[0] >= minSide && last[1] >= minSide && (last[2] == 3 || last[2] == 4)
}

// usualAxes names the axes of an array that no field names: (y, x), (b, y, x), (t, b, y, x), or (y, x, b) of a picture.
func usualAxes(shape []int) ([]string, error) {
	usual := []string{"t", "b", "y", "x"}
	switch {
	case len(shape) < 2 || len(shape) > len(usual):
		return nil, fault.New(fault.Unsupported, "array", "its shape is %d: rasters have two axes, "+
			"three with bands, or four with steps of time and bands; numbers of samples are columns of a table", shape)
	case len(shape) == 3 && looksLikePicture(shape):
		return []string{"y", "x", "b"}, nil
	case len(shape) == 4 && looksLikePicture(shape):
		return nil, fault.New(fault.Unsupported, "array", "its shape is %d: axes are (t, b, y, x), "+
			`and these look like (t, y, x, b): give the field dims="t y x b" or dims="t b y x"`, shape)
	}
	return usual[len(usual)-len(shape):], nil
}

// checkAxes refuses names of axes that do not fit a shape, or whose order of bytes an index cannot say.
func checkAxes(names []string, shape []int) error {
	dims := strings.Join(names, " ")
	if len(names) != len(shape) {
		return fault.New(fault.Unsupported, "array",
			"dims is %q, and its shape is %d: dims must name each axis", dims, shape)
	}
	if axes := (&chunk.Axes{Dims: dims}); !axes.Plain() {
		return fault.New(fault.Unsupported, "array", "dims is %q: arrays in files have y before x, "+
			"with nothing between, no n, and no t at the end if b is before y: save numpy.transpose of it", dims)
	}
	return nil
}

// array makes the index of an array with these axes, whose samples begin at an offset of a file of size bytes. Planes,
// the axes before y, lie one after another; the axes after x are interleaved in each pixel.
func array(d chunk.DType, axes []string, shape []int, off, size int64) (*chunk.Index, error) {
	sizes := map[string]int{"t": 1, "b": 1}
	for i, axis := range axes {
		sizes[axis] = shape[i] // below 2^31, see npy.Parse
	}
	index := &chunk.Index{DType: d, Codec: chunk.Raw, Predictor: chunk.NoPredictor, CutEdge: true,
		Height: sizes["y"], Width: sizes["x"], Bands: sizes["t"] * sizes["b"]}
	if slices.Contains(axes, "t") {
		index.Times = sizes["t"]
	}
	if index.Bands > chunk.MaxPlanes {
		return nil, fault.New(fault.Limit, "array",
			"its shape is %d: at most %d steps of time times bands", shape, chunk.MaxPlanes)
	}
	outer, inner := axes[:slices.Index(axes, "y")], axes[slices.Index(axes, "x")+1:]
	planes := 1
	for _, axis := range outer {
		planes *= sizes[axis]
	}
	if len(inner) > 0 {
		index.Inner = chunk.YXB
	}
	if slices.Equal(inner, []string{"b", "t"}) && sizes["b"] > 1 && sizes["t"] > 1 {
		index.Inner = chunk.YXBT
	}
	// The planes of an index are the bands of the first step, then the bands of the second.
	place := func(plane int) int { return plane }
	if slices.Equal(outer, []string{"b", "t"}) {
		place = func(plane int) int { return plane%sizes["b"]*sizes["t"] + plane/sizes["b"] }
	}
	index.ChunkB, index.ChunkW = index.Bands/max(planes, 1), index.Width
	if slices.Contains(shape, 0) {
		return nil, fault.New(fault.Unsupported, "array", "its shape is %d: it has no samples", shape)
	}
	// Sizes are compared before they are multiplied: a header may claim any shape.
	total, room := int64(d.Size()), size-off
	for _, n := range []int{index.ChunkB, index.ChunkW, index.Height, planes} {
		if int64(n) > room/total {
			return nil, fault.At(fault.Corrupt, "array", off, "samples of shape %d do not fit into %d bytes", shape,
				room)
		}
		total *= int64(n)
	}
	line := int64(d.Size() * index.ChunkB * index.ChunkW)
	index.ChunkH = int(min(max(stripBytes/line, 1), int64(index.Height)))
	for row := 0; row < index.Height; row += index.ChunkH {
		rows := int64(min(index.ChunkH, index.Height-row))
		for p := range planes {
			before := int64(place(p))*int64(index.Height) + int64(row)
			index.Ranges = append(index.Ranges, chunk.Range{Off: off + line*before, Len: line * rows})
		}
	}
	return index, nil
}
