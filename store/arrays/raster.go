package arrays

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/store"
)

// Raster is the raster of a field: an array, or arrays of one shape in a group as bands. It implements chunk.Array.
type Raster struct {
	node  *Node
	bands []*Images // one of any number of bands, or one for each band
	names []string
	grid  chunk.Index
	about store.About
	clock struct { // when the images were taken: see Times
		sync.Mutex
		read  bool
		times store.Labels // nil: nothing says it
	}
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
	index := &stack.grid
	if len(list) > chunk.MaxBands {
		return nil, nil
	}
	physical, nodata := make([]chunk.Linear, 0, len(list)), make([][]chunk.NoData, 0, len(list))
	var sides [2]int64
	for _, images := range list {
		grid := &images.grid
		physical = append(physical, grid.Linear(0))
		alike := grid.Height == index.Height && grid.Width == index.Width && grid.DType == index.DType
		single := grid.Bands == 1 && grid.Times <= 1
		if !single || !alike || grid.Times != index.Times || images.n != list[0].n {
			return nil, nil
		}
		for axis := range sides { // each chunk of the grid lies in one chunk of each array
			sides[axis] = num.Common(sides[axis], images.a.Chunks[images.dim[axisY+axis]])
		}
		stack.names = append(stack.names, path.Base(images.a.Path))
		nodata = append(nodata, images.nodata)
	}
	index.ChunkH, index.ChunkW = int(min(sides[0], int64(index.Height))), int(min(sides[1], int64(index.Width)))
	index.Bands, index.ChunkB, index.Physical = len(list), 1, chunk.Linears(physical)
	return stack, index.SetEachNoData(nodata)
}

// Len returns the number of images.
func (s *Raster) Len() int64 { return s.bands[0].n }

// HasN reports whether the images lie along an axis n.
func (s *Raster) HasN() bool { return s.bands[0].dim[0] >= 0 }

// Grid returns a chunk index that describes every image.
func (s *Raster) Grid() chunk.Index { return s.grid }

// Index returns the chunk index of image i.
func (s *Raster) Index(i int64) *chunk.Index { return s.grid.WithGrid(chunk.Grid{Array: s, Image: i}) }

// About implements store.Raster.
func (s *Raster) About() store.About { return s.about }

// describe sets what About returns.
func (s *Raster) describe() {
	var text strings.Builder
	for _, m := range s.bands {
		text.WriteString(m.a.print())
	}
	s.about = store.About{URI: s.bands[0].a.URI, Bands: s.names, Text: text.String(),
		Unnamed: len(s.bands[0].a.Names) == 0}
	if m := s.bands[0]; len(s.bands) == 1 && m.dim[2] >= 0 && m.dim[2] < len(m.a.Names) {
		if name := m.a.Names[m.dim[2]]; name != "" {
			s.about.BandAxis = path.Join(path.Dir(m.a.Path), name)
		}
	}
}

// axisNames returns the names of the dimensions n and t, or "" for a dimension that is missing or unnamed.
func (s *Raster) axisNames() (rows, steps string) {
	m := s.bands[0]
	name := func(axis int) string {
		if dim := m.dim[axis]; dim >= 0 && dim < len(m.a.Names) {
			return m.a.Names[dim]
		}
		return ""
	}
	return name(0), name(1)
}

// Arrays returns the arrays: one, or one for each band.
func (s *Raster) Arrays() []*Array {
	out := make([]*Array, len(s.bands))
	for i, m := range s.bands {
		out[i] = m.a
	}
	return out
}

// imagesOf returns the array that holds chunk i of the index, and the first plane of the chunk in it.
func (s *Raster) imagesOf(i int) (m *Images, plane int) {
	plane = i % s.grid.Groups() * s.grid.ChunkB
	each := s.bands[0].grid.Bands // planes of an array
	return s.bands[plane/each], plane % each
}

// Part implements chunk.Array.
func (s *Raster) Part(image int64, i int) (of chunk.ChunkID, begin int) {
	m, plane := s.imagesOf(i)
	position, bands := i/s.grid.Groups(), m.grid.StepBands()
	row, column := position/s.grid.Across()*s.grid.ChunkH, position%s.grid.Across()*s.grid.ChunkW
	cell := [...]int64{image, int64(plane / bands), int64(plane % bands), int64(row), int64(column)}
	of.Array = m.a.id
	offset := int64(0)
	for d, side := range m.a.Chunks {
		coord := cell[m.axis[d]]
		of.Number = of.Number*m.chunks[d] + coord/side
		offset += coord % side * m.stride[d]
	}
	return of, int(offset)
}

// Strides implements chunk.Array.
func (s *Raster) Strides(i int) chunk.Strides {
	m, _ := s.imagesOf(i)
	return m.strides
}

// Bytes implements chunk.Array.
func (s *Raster) Bytes() (n int) {
	for _, m := range s.bands {
		n = max(n, m.a.bytes)
	}
	return n
}

// Together implements chunk.Array.
func (s *Raster) Together() int64 {
	largest := int64(1)
	for _, m := range s.bands {
		if m.dim[0] >= 0 {
			largest = max(largest, m.a.Chunks[m.dim[0]])
		}
	}
	return largest
}

// Size implements chunk.Array.
func (s *Raster) Size(of chunk.ChunkID) int { return s.arrayOf(of).bytes }

// Row implements chunk.Array.
func (s *Raster) Row(of chunk.ChunkID) int {
	array := s.arrayOf(of)
	if !slices.ContainsFunc(array.Filters, Filter.slow) || len(array.Order) == 0 {
		return 0
	}
	return int(array.Chunks[array.Order[len(array.Order)-1]])
}

// holder returns the images that a chunk is of.
func (s *Raster) holder(of chunk.ChunkID) *Images {
	for _, m := range s.bands {
		if m.a.id == of.Array {
			return m
		}
	}
	return s.bands[0]
}

// arrayOf returns the array that a chunk is of.
func (s *Raster) arrayOf(of chunk.ChunkID) *Array { return s.holder(of).a }

// at returns the array of a chunk, and the chunk's coordinates.
func (s *Raster) at(of chunk.ChunkID) (*Array, []int64) {
	m := s.holder(of)
	coords := make([]int64, len(m.chunks))
	for d, n := range slices.Backward(m.chunks) {
		coords[d] = of.Number % n
		of.Number /= n
	}
	return m.a, coords
}

// Known implements chunk.Array.
func (s *Raster) Known(of chunk.ChunkID) (at chunk.Stored, exact bool) {
	array, coordinates := s.at(of)
	return array.locate(coordinates)
}

// Find implements chunk.Array.
func (s *Raster) Find(ctx context.Context, of chunk.ChunkID) (chunk.Stored, error) {
	array, coordinates := s.at(of)
	return array.Find(ctx, coordinates)
}

// Missing implements chunk.Array.
func (s *Raster) Missing(err error) bool { return Missing(err) }

// Fault implements chunk.Array.
func (s *Raster) Fault(err error, of chunk.ChunkID, at *chunk.Stored) error {
	array, coordinates := s.at(of)
	off := int64(fault.NoOffset)
	if !at.Object {
		off = at.At.Off
	}
	return array.fault(err, coordinates, off)
}

// Decoder implements chunk.Array.
func (s *Raster) Decoder(old chunk.ArrayDecoder) chunk.ArrayDecoder {
	if same, ok := old.(*rasterDecoder); ok {
		same.s = s
		return same
	}
	return &rasterDecoder{s: s}
}

// rasterDecoder decodes chunks for one worker.
type rasterDecoder struct {
	s      *Raster
	dec    chunkDecoder
	padded []byte
}

// Decode implements chunk.ArrayDecoder.
func (d *rasterDecoder) Decode(dst, stored []byte, at *chunk.Stored, of chunk.ChunkID) ([]byte, error) {
	array := d.s.arrayOf(of)
	if at.Absent {
		kernel.Fill(dst, array.Fill)
		return dst, nil
	}
	if at.Pad > 0 {
		d.padded = append(append(d.padded[:0], stored...), make([]byte, at.Pad)...)
		stored = d.padded
	}
	if len(array.steps) == 0 && !array.Bool && len(stored) == len(dst) {
		return stored, nil
	}
	return dst, array.decode(&d.dec, dst, stored, at.Skip)
}

// Raster returns the raster of a field. column is the path of an array below the node, the last part of such a path if
// only one array has it, or the path of a group whose arrays become bands, in the order of their names; "." is the node
// itself. Without a column it is the array with the field's name, else the only array that can be images, else the
// arrays of the group itself as bands. dims is as for Meta.Axes.
func (n *Node) Raster(ctx context.Context, field, column, dims string) (store.Raster, error) {
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
	raster.node = n
	raster.describe()
	return raster, nil
}

// prepare reads the indexes of chunks that arrays have one of.
func prepare(ctx context.Context, arrays []*Array) error {
	for _, a := range arrays {
		if err := a.chunks.Prepare(ctx); err != nil {
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
		case !Missing(err):
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
			return nil, n.noMember(column, list)
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
func namesOf(list []Member) string { return fault.List(list, Member.path) }

// path returns the path of an array.
func (m Member) path() string { return m.Path }
