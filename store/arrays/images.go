package arrays

import (
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// Images is an array as images (b, y, x), or (t, b, y, x), along an axis n. It does not change and is safe for
// concurrent use.
type Images struct {
	a    *Array
	dim  [5]int // the dimension of n, t, b, y and x, or -1
	n    int64
	grid chunk.Index

	nodata  []chunk.NoData
	axis    []int         // of each dimension
	chunks  []int64       // of the array along each dimension
	stride  []int64       // bytes from one cell to the next in a decoded chunk, along each dimension
	strides chunk.Strides // of a decoded chunk
}

// axisY is the number of the axis y among imageAxes.
const axisY = 3

// imageAxes are the names of the axes of images.
var imageAxes = []string{"n", "t", "b", "y", "x"}

// meanings are the names of dimensions that stand for an axis, in lower case, as CF, xarray, GDAL and EOPF write them.
var meanings = map[string]string{
	"n": "n", "sample": "n", "samples": "n", "chip": "n", "item": "n", "image": "n", "batch": "n",
	"t": "t", "time": "t", "date": "t",
	"b": "b", "band": "b", "bands": "b", "channel": "b", "channels": "b", "c": "b", "wavelength": "b",
	"y": "y", "lat": "y", "latitude": "y", "row": "y", "rows": "y", "northing": "y", "height": "y",
	"x": "x", "lon": "x", "longitude": "x", "col": "x", "cols": "x", "column": "x", "columns": "x", "easting": "x",
	"width": "x",
}

const imagesPart = "dimensions"

// Axes returns the axis of images that each dimension of an array stands for: as dims names them in order,
// else by the names of the dimensions. Two dimensions without names are y and x. An axis that dims leaves out has the
// length 1. It returns nil if the array cannot be images.
func (m *Meta) Axes(dims string) []string {
	if m.Texts != nil || m.Strings {
		return nil
	}
	names := strings.Fields(dims)
	if len(names) == 0 {
		for _, n := range m.Names {
			names = append(names, meanings[strings.ToLower(n)])
		}
		if len(m.Names) == 0 && len(m.Shape) == 2 {
			names = []string{"y", "x"}
		}
	}
	if len(names) != len(m.Shape) || dims == "" && !(slices.Contains(names, "y") && slices.Contains(names, "x")) {
		return nil
	}
	for d, n := range names {
		if !slices.Contains(imageAxes, n) || slices.Contains(names[:d], n) {
			return nil
		}
	}
	return names
}

// Images returns the array as images. dims is as for Axes. An array that cannot be images is fault.Unsupported.
func (a *Array) Images(dims string) (*Images, error) {
	if err := a.ready(); err != nil {
		return nil, err
	}
	axes := a.Axes(dims)
	if axes == nil {
		names, what := a.Names, "dims says"
		if dims == "" {
			what = "its dimensions are called"
		} else {
			names = strings.Fields(dims)
		}
		return nil, fault.WithFile(fault.New(fault.Unsupported, imagesPart, "%s %.200q, of the shape %v: name each "+
			"dimension once by dims, with n, t, b, y and x", what, names, a.Shape), a.URI)
	}
	images := &Images{a: a, dim: [5]int{-1, -1, -1, -1, -1}}
	for d, name := range axes {
		images.dim[slices.Index(imageAxes, name)] = d
	}
	return images, fault.WithFile(images.measure(), a.URI)
}

// measure computes the sizes of the images and of their chunks.
func (m *Images) measure() error {
	size, side := [5]int64{1, 1, 1, 1, 1}, [5]int64{1, 1, 1, 1, 1}
	limits := [5]int64{math.MaxInt64, chunk.MaxPlanes, chunk.MaxBands, chunk.MaxSide, chunk.MaxSide}
	for axis, dim := range m.dim {
		if dim < 0 {
			continue
		}
		size[axis], side[axis] = m.a.Shape[dim], min(m.a.Chunks[dim], max(m.a.Shape[dim], 1))
		if size[axis] > limits[axis] {
			return fault.New(fault.Limit, imagesPart, "%d cells along %s, at most %d", size[axis],
				imageAxes[axis], limits[axis])
		}
		if size[axis] < 1 && axis > 0 {
			return fault.New(fault.Unsupported, imagesPart, "no cells along %s", imageAxes[axis])
		}
	}
	if size[1]*size[2] > chunk.MaxPlanes {
		return fault.New(fault.Limit, imagesPart, "%d steps of time of %d bands, at most %d in all",
			size[1], size[2], chunk.MaxPlanes)
	}
	m.n = size[0]
	planes := int(size[1] * size[2])
	m.grid = chunk.Index{Bands: planes, Height: int(size[3]), Width: int(size[4]), ChunkB: 1, ChunkH: int(side[3]),
		ChunkW: int(side[4]), DType: m.a.DType, Predictor: chunk.NoPredictor, CutEdge: true, CutRight: true}
	if side[1] >= size[1] && side[2] >= size[2] {
		m.grid.ChunkB = planes
	}
	if m.dim[1] >= 0 {
		m.grid.Times = int(size[1])
	}
	m.nodata = m.a.noData()
	m.grid.Physical = m.a.physical()
	if err := m.layOut(); err != nil {
		return err
	}
	return m.grid.SetEachNoData([][]chunk.NoData{m.nodata})
}

// Grid returns a chunk index, without byte ranges, that describes every image.
func (m *Images) Grid() chunk.Index { return m.grid }

// layOut computes where the images lie in the chunks of the array. The numbers of chunks must fit in an int64.
func (m *Images) layOut() error {
	if m.chunks = gridOf(m.a.Shape, m.a.Chunks); Cells(m.chunks, math.MaxInt64) < 0 {
		return fault.New(fault.Limit, imagesPart, "a grid of %v chunks", m.chunks)
	}
	m.stride, m.axis = m.a.strides(), make([]int, len(m.a.Shape))
	size := int64(m.a.DType.Size())
	samples := func(axis int) int {
		if dim := m.dim[axis]; dim >= 0 {
			return int(m.stride[dim] / size)
		}
		return 0
	}
	for axis, dim := range m.dim {
		if dim >= 0 {
			m.axis[dim] = axis
		}
	}
	m.strides = chunk.Strides{T: samples(1), B: samples(2), Y: samples(axisY), X: samples(axisY + 1), Bands: 1}
	if m.grid.ChunkB > 1 {
		m.strides.Bands = m.grid.StepBands()
	}
	return nil
}
