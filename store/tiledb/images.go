package tiledb

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// Images is an attribute of a dense array as images (b, y, x) along an axis n. It does not change
// and is safe for concurrent use; each worker reads with a Reader of its own.
type Images struct {
	a    *Array
	attr int
	dim  [4]int // dimension of n, b, y and x, or -1
	axes []int  // the dimensions in the order n, b, y, x
	n    int64
	grid chunk.Index
	// order has bands, rows and columns in the order of the tiles: see chunk.Blocks.
	order [3]uint8
	full  bool // every cell of every written image was written
}

const imagesPart = "dimensions"

// Images returns an attribute as images. dims names the dimensions of the array in their order, as
// n, b, y and x, n and b may be missing. If it is empty, the dimensions must have these names. The
// attribute must have one number in each cell. Other arrays are fault.Unsupported.
func (a *Array) Images(attr int, dims string) (*Images, error) {
	bad := func(format string, args ...any) (*Images, error) {
		return nil, fault.WithFile(fault.New(fault.Unsupported, imagesPart, format, args...), a.uri)
	}
	schema := a.Schema
	attribute := &schema.Attrs[attr]
	switch {
	case !schema.Dense:
		return bad("the array is sparse: it has single cells, not images")
	case attribute.Values != 1 || attribute.Type.Sample() == chunk.Invalid:
		return bad("attribute %s has cells of %s of type %v, not one number", attribute.Name, attribute.Cells(),
			attribute.Type)
	}
	names := strings.Fields(dims)
	if len(names) == 0 {
		for i := range schema.Dims {
			names = append(names, schema.Dims[i].Name)
		}
	}
	if len(names) != len(schema.Dims) {
		return bad("%q names %d dimensions, the array has %d", dims, len(names), len(schema.Dims))
	}
	images := &Images{a: a, attr: attr, dim: [4]int{-1, -1, -1, -1}}
	for dim, name := range names {
		axis := slices.Index(imageAxes, name)
		if axis < 0 || images.dim[axis] >= 0 {
			return bad("%q: the names of dimensions are n, b, y and x, each at most once", strings.Join(names, " "))
		}
		images.dim[axis] = dim
	}
	if images.dim[2] < 0 || images.dim[3] < 0 {
		return bad("%q: dimensions y and x are missing", strings.Join(names, " "))
	}
	for _, d := range images.dim {
		if d >= 0 {
			images.axes = append(images.axes, d)
		}
	}
	if err := images.measure(); err != nil {
		return nil, fault.WithFile(err, a.uri)
	}
	if lo, hi := images.Written(); lo < hi && !attribute.Nullable {
		images.full = a.Covers(images.box(lo, hi))
	}
	return images, nil
}

// measure computes the sizes of the images and of their tiles.
func (m *Images) measure() error {
	schema := m.a.Schema
	size := [4]int64{1, 1, 1, 1}
	side := [4]int{1, 1, 1, 1}
	limits := [4]int64{math.MaxInt64 - 1, chunk.MaxBands, chunk.MaxSide, chunk.MaxSide}
	for axis, dim := range m.dim {
		if dim < 0 {
			continue
		}
		area := schema.area(dim)
		length := uint64(area.Hi - area.Lo)
		if box := m.a.NonEmpty(); axis == 0 && length >= uint64(limits[0]) &&
			(box == nil || uint64(box[dim].Hi-area.Lo) < uint64(limits[0])) {
			// The domain may be unbounded, but its images were written near its beginning: only those need numbers.
			length = uint64(limits[0]) - 1
		}
		if length >= uint64(limits[axis]) {
			return fault.New(fault.Limit, imagesPart, "dimension %q has more than %d cells",
				schema.Dims[dim].Name, limits[axis])
		}
		size[axis], side[axis] = int64(length)+1, int(schema.Dims[dim].Extent)
	}
	m.n = size[0]
	m.order = m.tileOrder()
	m.grid = chunk.Index{Bands: int(size[1]), Height: int(size[2]), Width: int(size[3]), ChunkB: 1,
		ChunkH: side[2], ChunkW: side[3],
		DType: schema.Attrs[m.attr].Type.Sample(), Predictor: chunk.NoPredictor, CutEdge: true, CutRight: true}
	if side[1] >= m.grid.Bands {
		m.grid.ChunkB = m.grid.Bands
	}
	m.grid.NoData, m.grid.NoDataBits = m.grid.DType.NoData(schema.Attrs[m.attr].FillValue())
	return nil
}

// tileOrder returns bands, rows and columns in the order of the tiles in files. Without a dimension
// of bands these change last.
func (m *Images) tileOrder() (order [3]uint8) {
	axes := []int{1, 2, 3}
	slices.SortFunc(axes, func(a, b int) int {
		if m.a.Schema.TileOrder == ColMajor && m.dim[a] >= 0 && m.dim[b] >= 0 {
			a, b = b, a
		}
		return cmp.Compare(m.dim[a], m.dim[b])
	})
	for k, axis := range axes {
		order[k] = uint8(axis - 1)
	}
	return order
}

// Len returns the number of images.
func (m *Images) Len() int64 { return m.n }

// Grid returns a chunk index, without byte ranges, that describes every image. Its chunks are the
// array's tiles: they hold all bands if a tile does, otherwise one band. Cells that were never
// written are nodata. Index describes a single image.
func (m *Images) Grid() chunk.Index { return m.grid }

// Read fills dst with a box of image i: (b, y, x) in C order, little-endian. The box must lie inside the image and have
// len(dst) bytes. A box of Grid decodes one tile, other boxes all tiles that they intersect.
func (m *Images) Read(ctx context.Context, r *Reader, dst []byte, i int64, b chunk.Box) error {
	box, err := m.cells(i, b)
	if err != nil {
		return err
	}
	r.ahead.outer = m.outer(i)
	err = r.DenseInto(ctx, dst, m.attr, box, m.axes)
	// Boxes that are read later may lie outside of this image: outer must be forgotten.
	r.ahead.outer = nil
	return err
}

// outer returns the box of image i if its parts must be read as parts of it: see shadow.go.
func (m *Images) outer(i int64) Box {
	if !m.a.anyShadowed {
		return nil
	}
	return m.box(i, i+1)
}

// cells returns the cells of the array for a box of image i.
func (m *Images) cells(i int64, b chunk.Box) (Box, error) {
	g := &m.grid
	if i < 0 || i >= m.n || !b.Inside(g.Bands, g.Height, g.Width) {
		return nil, fault.New(fault.NotFound, "window", "box %+v is not inside image %d", b, i)
	}
	box := make(Box, len(m.axes))
	for k, span := range [4][2]int64{{i, i + 1}, {int64(b.B0), int64(b.B1)}, {int64(b.Y0), int64(b.Y1)},
		{int64(b.X0), int64(b.X1)}} {
		if dim := m.dim[k]; dim >= 0 {
			lo := m.a.Schema.area(dim).Lo
			box[dim] = Interval{lo + Coord(span[0]), lo + Coord(span[1]-1)}
		}
	}
	return box, nil
}

// Index returns a chunk index of image i like Grid, with its Blocks. If every cell of the image was
// written (Array.Covers), it has no nodata: a pixel with the fill value was measured.
func (m *Images) Index(i int64) *chunk.Index {
	x := m.grid.WithBlocks(chunk.Blocks{Array: m, Image: i, Order: m.order})
	if attribute := &m.a.Schema.Attrs[m.attr]; m.full || !attribute.Nullable && m.a.Covers(m.box(i, i+1)) {
		x.NoData, x.NoDataBits = nil, nil
	}
	return x
}

// box returns the cells of images lo to hi-1.
func (m *Images) box(lo, hi int64) Box {
	box := m.a.Schema.Area()
	if d := m.dim[0]; d >= 0 {
		box[d] = Interval{box[d].Lo + Coord(lo), box[d].Lo + Coord(hi-1)}
	}
	return box
}

// Open implements chunk.BlockArray.
func (m *Images) Open() chunk.BlockReader { return &imageReader{m, m.a.NewReader()} }

// imageReader reads images for one worker.
type imageReader struct {
	m *Images
	r *Reader
}

// ReadBox implements chunk.BlockReader.
func (r *imageReader) ReadBox(ctx context.Context, dst []byte, image int64, b chunk.Box) error {
	return r.m.Read(ctx, r.r, dst, image, b)
}

// Ahead implements chunk.Prefetcher.
func (r *imageReader) Ahead(ctx context.Context, image int64, boxes []chunk.Box) error {
	list := make([]Box, len(boxes))
	for k, b := range boxes {
		var err error
		if list[k], err = r.m.cells(image, b); err != nil {
			return err
		}
	}
	r.r.ahead.outer = r.m.outer(image)
	err := r.r.Ahead(ctx, r.m.attr, list)
	r.r.ahead.outer = nil
	return err
}

// SetTurn implements chunk.TurnTaker.
func (r *imageReader) SetTurn(turn func() (done func())) { r.r.Turn = turn }

// Plan implements chunk.BlockPlanner.
func (m *Images) Plan() chunk.BlockPlan {
	p := m.a.NewDryRun()
	return &imagePlan{&imageReader{m, p.r}, p}
}

// imagePlan is the dry run of an imageReader. It implements chunk.Prefetcher.
type imagePlan struct {
	*imageReader
	p *DryRun
}

// PlanBox implements chunk.BlockPlan.
func (p *imagePlan) PlanBox(ctx context.Context, image int64, b chunk.Box,
	read func(file string, off, n int64)) (exact bool, err error) {
	return p.p.run(read, func() error { return p.ReadBox(ctx, nil, image, b) })
}

// Held implements chunk.BlockPlan.
func (p *imagePlan) Held() int64 { return p.p.Held() }

// Coord returns the coordinate of image i along n, or 0 without n.
func (m *Images) Coord(i int64) Coord {
	if m.dim[0] < 0 {
		return 0
	}
	return m.a.Schema.area(m.dim[0]).Lo + Coord(i)
}

// Written returns the range of images [lo, hi) that may have been written. An array without n has
// one image, if anything was written.
func (m *Images) Written() (lo, hi int64) {
	box := m.a.NonEmpty()
	switch d := m.dim[0]; {
	case box == nil:
		return 0, 0
	case d < 0:
		return 0, 1
	default:
		low := m.a.Schema.area(d).Lo
		return int64(box[d].Lo - low), int64(box[d].Hi-low) + 1
	}
}

// N returns the dimension of n, or -1.
func (m *Images) N() int { return m.dim[0] }

// imageAxes are the names of the axes of images.
var imageAxes = []string{"n", "b", "y", "x"}
