package zarr

import (
	"context"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// Raster is the raster of a field: an array, or arrays of one shape in a group as bands. It implements
// chunk.BlockArray.
type Raster struct {
	bands []*Images // one of any number of bands, or one for each band
	names []string
	grid  chunk.Index
}

// single returns the raster of one array.
func single(m *Images, err error) (*Raster, error) {
	if err != nil {
		return nil, err
	}
	return &Raster{bands: []*Images{m}, grid: m.grid}, nil
}

// newStack stacks arrays of one band each, with the nodata values of each. It returns nil if they differ in their
// shapes.
func newStack(list []*Images) (*Raster, error) {
	stack := &Raster{bands: list, grid: list[0].grid}
	index := &list[0].grid
	if len(list) > chunk.MaxBands {
		return nil, nil
	}
	physical, nodata := make([]chunk.Linear, 0, len(list)), make([][]chunk.NoData, 0, len(list))
	for _, images := range list {
		grid := &images.grid
		physical = append(physical, grid.Linear(0))
		alike := grid.Height == index.Height && grid.Width == index.Width && grid.DType == index.DType
		if grid.Bands != 1 || grid.Times != index.Times || grid.Times > 1 || !alike || images.n != list[0].n {
			return nil, nil
		}
		// Bands with other chunks are read in the chunks of the first, which decodes some chunks twice.
		stack.names = append(stack.names, path.Base(images.a.Path))
		nodata = append(nodata, images.nodata)
	}
	stack.grid.Bands, stack.grid.ChunkB, stack.grid.Physical = len(list), 1, chunk.Linears(physical)
	return stack, stack.grid.SetEachNoData(nodata)
}

// Len returns the number of images.
func (s *Raster) Len() int64 { return s.bands[0].n }

// HasN reports whether the images lie along an axis n.
func (s *Raster) HasN() bool { return s.bands[0].dim[0] >= 0 }

// Grid returns a chunk index that describes every image.
func (s *Raster) Grid() chunk.Index { return s.grid }

// Index returns the chunk index of image i.
func (s *Raster) Index(i int64) *chunk.Index {
	return s.grid.WithBlocks(chunk.Blocks{Array: s, Image: i})
}

// BandNames returns the names of the bands, or nil if they have none.
func (s *Raster) BandNames() []string { return s.names }

// Arrays returns the arrays: one, or one for each band.
func (s *Raster) Arrays() []*Array {
	out := make([]*Array, len(s.bands))
	for i, m := range s.bands {
		out[i] = m.a
	}
	return out
}

// Open implements chunk.BlockArray.
func (s *Raster) Open() chunk.BlockReader {
	reader := &rasterReader{s: s}
	for _, m := range s.bands {
		reader.readers = append(reader.readers, m.a.NewReader())
	}
	return reader
}

// rasterReader reads images for one worker.
type rasterReader struct {
	s       *Raster
	readers []*Reader // of each array
}

// SetTurn implements chunk.TurnTaker.
func (r *rasterReader) SetTurn(turn func() (done func())) {
	for _, reader := range r.readers {
		reader.Turn = turn
	}
}

// parts calls do for the parts of a box of an image that follow each other: each is a box of cells of one array, with
// some planes.
func (r *rasterReader) parts(image int64, b chunk.Box, do func(array int, cells Box, planes int) error) error {
	if g := &r.s.grid; image < 0 || image >= r.s.Len() || !b.Inside(g.Bands, g.Height, g.Width) {
		return fault.New(fault.NotFound, "window", "box %+v is not inside image %d", b, image)
	}
	each := r.s.bands[0].grid.Bands // planes of an array
	for array := b.B0 / each; array*each < b.B1; array++ {
		part := b
		part.B0, part.B1 = max(b.B0-array*each, 0), min(b.B1-array*each, each)
		err := r.s.bands[array].parts(image, part, func(cells Box, planes int) error {
			return do(array, cells, planes)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadBox implements chunk.BlockReader.
func (r *rasterReader) ReadBox(ctx context.Context, dst []byte, image int64, b chunk.Box) error {
	return r.parts(image, b, func(array int, cells Box, planes int) error {
		size := planes * (b.Y1 - b.Y0) * (b.X1 - b.X0) * r.s.grid.DType.Size()
		part := dst[:size]
		dst = dst[size:]
		return r.readers[array].ReadInto(ctx, part, cells.Lo, cells.Hi, r.s.bands[array].strides(cells))
	})
}

// Ahead implements chunk.Prefetcher.
func (r *rasterReader) Ahead(ctx context.Context, image int64, boxes []chunk.Box) error {
	lists := make([][]Box, len(r.readers))
	for _, b := range boxes {
		err := r.parts(image, b, func(array int, cells Box, _ int) error {
			lists[array] = append(lists[array], cells)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for k, list := range lists {
		if err := r.readers[k].Ahead(ctx, list); err != nil {
			return err
		}
	}
	return nil
}

// Raster returns the raster of a field. column is the path of an array below the node, the last part of such a path if
// only one array has it, or the path of a group whose arrays become bands, in the order of their names; "." is the node
// itself. Without a column it is the array with the field's name, else the only array that can be images, else the
// arrays of the group itself as bands. dims is as for Meta.Axes.
func (n *Node) Raster(ctx context.Context, field, column, dims string) (*Raster, error) {
	raster, err := n.raster(ctx, field, column, dims)
	if err == nil {
		err = fault.WithFile(n.options.memory.reserve(ctx, raster.Arrays()), n.URI)
	}
	if err == nil {
		err = prepare(ctx, raster.Arrays())
	}
	if err != nil {
		return nil, err
	}
	return raster, nil
}

// prepare reads the indexes of chunks of arrays in files of other formats.
func prepare(ctx context.Context, arrays []*Array) error {
	for _, a := range arrays {
		if a.foreign == nil {
			continue
		}
		if err := a.foreign.Prepare(ctx); err != nil {
			return fault.WithFile(err, a.URI)
		}
	}
	return nil
}

// raster is Raster without room for indexes.
func (n *Node) raster(ctx context.Context, field, column, dims string) (*Raster, error) {
	if n.Array != nil {
		if column != "" && column != "." && column != path.Base(n.URI) {
			return nil, fault.WithFile(fault.New(fault.NotFound, "array",
				"%q: the dataset is a single array", column), n.URI)
		}
		return single(n.Array.Images(dims))
	}
	if column != "" && column != "." {
		node, err := n.At(ctx, strings.Trim(column, "/"))
		switch {
		case err == nil && node.Array != nil:
			return single(node.Array.Images(dims))
		case err == nil:
			list, err := node.Members(ctx)
			if err != nil {
				return nil, err
			}
			return node.bandsOf(list, dims)
		case !missing(err):
			return nil, err
		}
	}
	list, err := n.Members(ctx)
	if err != nil {
		return nil, err
	}
	if column != "." {
		array, ok, err := pick(list, field, column, dims)
		if err != nil {
			return nil, err
		}
		if ok {
			return single(array.Images(dims))
		}
		if column != "" {
			return nil, fault.WithFile(fault.New(fault.NotFound, "group",
				"no array or group %q; there are %s", column, namesOf(list)), n.URI)
		}
	}
	return n.bandsOf(list, dims)
}

// pick returns the array that a field means, or why it cannot be read. An array that may be an image and cannot be read
// makes the choice among those that can an error.
func pick(list []Member, field, column, dims string) (*Array, bool, error) {
	var same, images []Member
	for _, member := range list {
		if want := column; want == path.Base(member.Path) || want == "" && (field == member.Path ||
			field == path.Base(member.Path)) {
			same = append(same, member)
		}
		if member.mayBeImage(dims) {
			images = append(images, member)
		}
	}
	if len(same) == 1 {
		// Another array would be other pixels under the field's name.
		return same[0].Array, same[0].Err == nil, same[0].Err
	}
	if column == "" && len(same) == 0 && len(images) == 1 {
		return images[0].Array, images[0].Err == nil, images[0].Err
	}
	return nil, false, nil
}

// mayBeImage reports whether an array can be images, or cannot be read and has pixels.
func (m *Member) mayBeImage(dims string) bool {
	return m.Array != nil && m.Array.Axes(dims) != nil || m.Err != nil && m.Pixels
}

// bandsOf returns the arrays of the group itself as bands. One that may be a band and cannot be read is an error, since
// the bands behind it would have other numbers.
func (n *Node) bandsOf(list []Member, dims string) (*Raster, error) {
	var images []*Images
	for _, member := range list {
		if strings.Contains(member.Path, "/") {
			continue
		}
		if member.Err != nil && (fault.KindOf(member.Err) != fault.Unsupported || member.Pixels) {
			return nil, member.Err
		}
		if member.Array == nil || member.Array.Axes(dims) == nil {
			continue
		}
		image, err := member.Array.Images(dims)
		if err != nil {
			return nil, err
		}
		images = append(images, image)
	}
	if len(images) == 1 {
		return single(images[0], nil)
	}
	if len(images) > 1 {
		if s, err := newStack(images); s != nil || err != nil {
			return s, fault.WithFile(err, n.URI)
		}
	}
	return nil, fault.WithFile(fault.New(fault.Unsupported, "group", "its arrays are not the bands of one image: name "+
		"an array, or a group of arrays of one shape, as column; there are %s", namesOf(list)), n.URI)
}

// namesOf lists the first paths of arrays, for an error.
func namesOf(list []Member) string { return fault.List(list, func(m Member) string { return m.Path }) }
