package hdf5

import (
	"bytes"
	"math"
	"math/bits"
)

// layoutClass is how the elements of a dataset are stored.
type layoutClass byte

const (
	compact layoutClass = iota
	contiguous
	chunked
	virtual
)

// indexType is the index of the chunks of a layout of version 4.
type indexType byte

const (
	indexBtree1 indexType = iota // of earlier versions
	indexSingle
	indexImplicit
	indexFixed
	indexExtensible
	indexBtree2
)

const layoutPart = "data layout"

// dataLayout is where the elements of a dataset are stored.
type dataLayout struct {
	version int
	class   layoutClass
	data    []byte // of a compact one
	addr    uint64 // of the data, or of the index of chunks
	size    uint64 // of contiguous data
	chunk   []int64
	element int64 // bytes of an element, as the layout has it
	index   indexType
	// plainEdges is true if filters are not applied to chunks that pass the edge.
	plainEdges bool
	// Of a single chunk that is filtered.
	filtered bool
	stored   uint64
	mask     uint32
}

// layout reads a data layout.
func (w *walk) layout(m *message) (*dataLayout, error) {
	b, err := w.content(m, layoutPart)
	if err != nil {
		return nil, err
	}
	version, err := b.version(1, 2, 3, 4, 5)
	if err != nil {
		return nil, err
	}
	made := &dataLayout{version: int(version), addr: undefined}
	if version < 3 {
		return made, made.early(b)
	}
	switch made.class = layoutClass(b.u8()); made.class {
	case compact:
		made.data = bytes.Clone(b.take(b.u16()))
	case contiguous:
		made.addr, made.size = b.offset(), b.length()
	case chunked:
		if version == 3 {
			n := int(b.u8())
			made.addr = b.offset()
			return made, made.sides(b, n, 4)
		}
		return made, made.later(b)
	case virtual:
		return nil, unsupported(layoutPart, "a virtual dataset")
	default:
		return nil, unsupported(layoutPart, "class %d", made.class)
	}
	return made, b.err
}

// early reads the rest of versions 1 and 2.
func (l *dataLayout) early(b *block) error {
	n := int(b.u8())
	l.class = layoutClass(b.u8())
	b.take(5)
	if l.class != compact {
		l.addr = b.offset()
	}
	switch l.class {
	case compact:
		b.take(4 * n)
		l.data = bytes.Clone(b.take(int(b.u32())))
	case contiguous:
		l.size = math.MaxUint64 // as many as the dataset has
	case chunked:
		return l.sides(b, n, 4)
	default:
		return unsupported(layoutPart, "class %d", l.class)
	}
	return b.err
}

// sides reads the cells of a chunk along each dimension, and the bytes of an element.
func (l *dataLayout) sides(b *block, n, width int) error {
	if n < 2 || n > maxRank+1 {
		return b.fail("chunks of %d dimensions", n-1)
	}
	for range n {
		side := b.uint(width)
		if b.err == nil && (side < 1 || side > math.MaxInt64/2) {
			return b.fail("a chunk of %d cells along a dimension", side)
		}
		l.chunk = append(l.chunk, int64(side))
	}
	l.element, l.chunk = l.chunk[n-1], l.chunk[:n-1]
	return b.err
}

// later reads chunks of versions 4 and 5.
func (l *dataLayout) later(b *block) error {
	flags, n, width := b.u8(), int(b.u8()), int(b.u8())
	if b.err == nil && (width < 1 || width > 8) {
		return b.fail("sizes of %d bytes", width)
	}
	if err := l.sides(b, n, width); err != nil {
		return err
	}
	l.plainEdges = flags&1 != 0
	switch l.index = indexType(b.u8()); l.index {
	case indexSingle:
		if l.filtered = flags&2 != 0; l.filtered {
			l.stored, l.mask = b.length(), b.u32()
		}
	case indexImplicit:
	case indexFixed:
		b.take(1) // what the header of the array says too
	case indexExtensible:
		b.take(5) // what the header of the array says too
	case indexBtree2:
		b.take(6)
	default:
		return unsupported(layoutPart, "chunk index %d", l.index)
	}
	l.addr = b.offset()
	return b.err
}

// chunkBytes returns the decoded bytes of a chunk, or an error if they are more than limit.
func (l *dataLayout) chunkBytes(limit int64) (int64, error) {
	n := product(l.chunk, limit/max(l.element, 1))
	if n < 0 {
		return 0, unsupported(layoutPart, "chunks of %v elements of %d bytes", l.chunk, l.element)
	}
	return n * l.element, nil
}

// sizeBytes returns how many bytes the size of a stored chunk takes in an index of version 4 or 5.
func (l *dataLayout) sizeBytes(f *file, chunkBytes int64) int {
	if l.version > 4 {
		return f.lengthSize
	}
	return min(1+(bits.Len64(uint64(max(chunkBytes, 1)))-1+8)/8, 8)
}
