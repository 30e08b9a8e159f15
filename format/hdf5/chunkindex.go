package hdf5

import (
	"cmp"
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Chunk is where a chunk is stored.
type Chunk struct {
	Number int64 // in the grid of chunks of the shape, the last dimension fastest
	Off    int64 // in the file
	Size   int64 // bytes
	Skip   uint32
}

// Chunks are the chunks of a dataset that were written. It does not change.
type Chunks struct {
	list []Chunk // by their numbers
	side *side   // nil for chunks that have an index
}

// side is where chunks lie side by side, without an index.
type side struct {
	off, bytes int64
	grid, most []int64 // chunks along each dimension of the shape, and of the largest shape, which numbers them
}

// Find returns a chunk, or false if it was not written.
func (c *Chunks) Find(number int64) (Chunk, bool) {
	if c.side == nil {
		i, ok := slices.BinarySearchFunc(c.list, number, func(c Chunk, n int64) int { return cmp.Compare(c.Number, n) })
		if !ok {
			return Chunk{}, false
		}
		return c.list[i], true
	}
	rest, before, step := number, int64(0), int64(1)
	for d, n := range slices.Backward(c.side.grid) {
		before += rest % max(n, 1) * step
		rest, step = rest/max(n, 1), step*c.side.most[d]
	}
	return Chunk{Number: number, Off: c.side.off + before*c.side.bytes, Size: c.side.bytes}, true
}

const (
	// ChunkCost is the memory of a Chunk.
	ChunkCost = 32
	chunkPart = "chunk index"
	maxChunks = 1 << 26
)

// chunkIndex collects the chunks of a dataset.
type chunkIndex struct {
	*walk
	d     *Dataset
	list  []Chunk
	side  *side
	grid  []int64 // chunks along each dimension of the shape
	most  []int64 // and of the largest shape, which numbers the entries of arrays
	bytes int64   // of a chunk, decoded
}

// Chunks reads the index of the chunks of a dataset from its file. take is called for the bytes of memory of the index,
// again and again; its error ends the reading.
func (d *Dataset) Chunks(ctx context.Context, r source.Reader, take func(n int64) error) (*Chunks, error) {
	layout := d.layout
	if layout.class != chunked || layout.addr == undefined {
		return &Chunks{}, nil
	}
	size, err := layout.chunkBytes(maxChunkBytes)
	if err != nil {
		return nil, err
	}
	x := &chunkIndex{walk: d.file.walk(ctx, r), d: d, bytes: size}
	x.take = take
	for i, n := range d.Shape {
		x.grid = append(x.grid, ceil(n, layout.chunk[i]))
		x.most = append(x.most, ceil(d.max[i], layout.chunk[i]))
	}
	if product(x.grid, Unlimited) < 0 {
		return nil, fault.New(fault.Limit, chunkPart, "a grid of %v chunks", x.grid)
	}
	if err := x.read(); err != nil {
		return nil, err
	}
	slices.SortFunc(x.list, func(a, b Chunk) int { return cmp.Compare(a.Number, b.Number) })
	left := x.size
	for i, c := range x.list {
		if i > 0 && c.Number == x.list[i-1].Number {
			return nil, fault.At(fault.Corrupt, chunkPart, c.Off, "two chunks at one place")
		}
		// A small file could otherwise name one range millions of times, and each of them would be decoded.
		if left -= c.Size; left < 0 {
			return nil, fault.At(fault.Corrupt, chunkPart, c.Off, "the chunks have more bytes than the file")
		}
	}
	return &Chunks{x.list, x.side}, nil
}

// maxChunkBytes is the largest chunk whose index is read; its readers have a lower limit.
const maxChunkBytes = 1 << 40

// ceil divides and rounds up.
func ceil(n, by int64) int64 {
	if n == 0 {
		return 0
	}
	return (n-1)/by + 1
}

// read reads the index.
func (x *chunkIndex) read() error {
	layout, position := x.d.layout, make([]int64, len(x.grid))
	filtered := len(x.d.Filters) > 0
	sizeBytes := layout.sizeBytes(x.file, x.bytes)
	record, client := byte(recordChunk), byte(0)
	if filtered {
		record, client = recordFiltered, 1
	}
	// entry adds a chunk whose place comes first in b.
	entry := func(b *block, at []int64) error {
		addr, size, skip := b.offset(), uint64(x.bytes), uint32(0)
		if filtered {
			size, skip = b.uint(min(sizeBytes, max(b.rest()-4, 0))), b.u32()
		}
		if b.err != nil || addr == undefined {
			return b.err
		}
		return x.add(at, addr, size, skip)
	}
	switch layout.index {
	case indexBtree1:
		return x.fromBtree1()
	case indexSingle:
		size := uint64(x.bytes)
		if layout.filtered {
			size = layout.stored
		}
		return x.add(position, layout.addr, size, layout.mask)
	case indexImplicit:
		return x.implicit()
	case indexFixed:
		numbers := newNumbering(x.most, 0)
		return x.fixedArray(layout.addr, client, func(n uint64, b *block) error {
			return entry(b, numbers.place(n, position))
		})
	case indexExtensible:
		numbers := newNumbering(x.most, max(slices.Index(x.d.max, Unlimited), 0))
		return x.extensibleArray(layout.addr, client, func(n uint64, b *block) error {
			return entry(b, numbers.place(n, position))
		})
	default:
		return x.btree2(layout.addr, record, func(b *block) error {
			front := len(b.all) - 8*len(position)
			if front < x.offsetSize {
				return b.fail("a record of %d bytes for a chunk of %d dimensions", len(b.all), len(position))
			}
			if filtered {
				sizeBytes = front - x.offsetSize - 4
			}
			places := x.of(b.part, b.addr, b.all[front:])
			for d := range position {
				position[d] = int64(places.uint(8) & Unlimited)
			}
			b.all = b.all[:front]
			return entry(b, position)
		})
	}
}

// add adds a chunk, unless it lies outside of the shape, as chunks of a dataset that shrank may.
func (x *chunkIndex) add(at []int64, addr, size uint64, skip uint32) error {
	number, edge := int64(0), false
	for d, n := range x.grid {
		if at == nil || at[d] >= n {
			return nil
		}
		number = number*n + at[d]
		edge = edge || (at[d]+1)*x.d.layout.chunk[d] > x.d.Shape[d]
	}
	if edge && x.d.layout.plainEdges {
		skip, size = 1<<len(x.d.Filters)-1, uint64(x.bytes)
	}
	off, err := x.position(chunkPart, addr, size)
	if err != nil {
		return err
	}
	if len(x.list) >= maxChunks {
		return fault.New(fault.Limit, chunkPart, "more than %d chunks", maxChunks)
	}
	if len(x.list) == cap(x.list) {
		grown := max(2, len(x.list)) // the list doubles
		if err := x.take(ChunkCost * int64(grown)); err != nil {
			return err
		}
		x.list = slices.Grow(x.list, grown)
	}
	x.list = append(x.list, Chunk{Number: number, Off: off, Size: int64(size), Skip: skip})
	return nil
}

// fromBtree1 reads a version 1 B-tree.
func (x *chunkIndex) fromBtree1() error {
	position := make([]int64, len(x.grid))
	return x.btree1(x.d.layout.addr, 1, 8+8*(len(position)+1), func(key *block, child uint64) error {
		size, skip := key.u32(), key.u32()
		for d, side := range x.d.layout.chunk {
			cell := key.uint(8)
			if cell%uint64(side) != 0 || cell > Unlimited {
				return key.fail("a chunk begins at cell %d along dimension %d, which are chunks of %d", cell, d, side)
			}
			position[d] = int64(cell) / side
		}
		return x.add(position, child, uint64(size), skip)
	})
}

// implicit finds the chunks that lie side by side without an index.
func (x *chunkIndex) implicit() error {
	count := product(x.most, x.size/max(x.bytes, 1))
	if count < 0 {
		return fault.New(fault.Corrupt, chunkPart, "%v chunks of %d bytes in a file of %d", x.most, x.bytes, x.size)
	}
	off, err := x.position(chunkPart, x.d.layout.addr, uint64(count*x.bytes))
	x.side = &side{off: off, bytes: x.bytes, grid: x.grid, most: x.most}
	return err
}

// numbering turns the number of an entry into the place of a chunk.
type numbering struct {
	most  []int64
	first int // the dimension that is slowest; the others follow in their order
}

func newNumbering(most []int64, first int) numbering { return numbering{most, first} }

// place fills at with the place of entry n, and returns it: nil if it lies outside of the largest shape.
func (m numbering) place(n uint64, at []int64) []int64 {
	for d := len(m.most) - 1; d >= 0; d-- {
		if d == m.first {
			continue
		}
		side := uint64(max(m.most[d], 1))
		at[d], n = int64(n%side), n/side
	}
	if len(m.most) > 0 {
		if n >= uint64(max(m.most[m.first], 1)) {
			return nil
		}
		at[m.first] = int64(n)
	}
	return at
}
