package arrays

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/num"
)

// Bytes of a piece of elements that lie side by side. A piece has all of the last dimensions that take wholeBytes at
// most together, such as all bands of a small chip, so that few pieces are handled. Of one more it has about
// pieceBytes, so that a window of a scene reads few bytes beside it; neighbours are read at once.
const (
	wholeBytes = 64 << 10
	pieceBytes = 16 << 10
)

// Side finds the chunks of an array whose elements lie side by side in a file: each is a range of bytes.
type Side struct {
	file          chunk.Stored // URI, Size, ETag
	off           int64
	size, bytes   int64 // of an element, of all
	shape, chunks []int64
	order         []int
}

// LaySide makes chunks of an array whose elements lie side by side in a file, in a range that is in it, in the order
// that Order has.
func (m *Meta) LaySide(file chunk.Stored, at chunk.Range) *Side {
	if m.Order == nil {
		m.Order = num.Range[int](0, len(m.Shape))
	}
	size := int64(m.elementSize())
	m.Chunks = make([]int64, len(m.Shape))
	bytes, cut := size, false // of a piece so far, and whether it has a part of a dimension
	for _, d := range slices.Backward(m.Order) {
		n := max(m.Shape[d], 1)
		switch {
		case cut:
			n = 1
		case n > wholeBytes/bytes:
			n, cut = max(pieceBytes/bytes, 1), true
		}
		m.Chunks[d] = n
		bytes *= n
	}
	return &Side{file: file, off: at.Off, size: size, bytes: at.Len, shape: m.Shape, chunks: m.Chunks, order: m.Order}
}

// Prepare implements Chunks.
func (*Side) Prepare(context.Context) error { return nil }

// Find implements Chunks.
func (s *Side) Find(_ context.Context, at []int64) (chunk.Stored, error) {
	first, count := int64(0), int64(1)
	for _, d := range s.order {
		first, count = first*s.shape[d]+at[d]*s.chunks[d], count*s.chunks[d]
	}
	off, bytes := first*s.size, count*s.size
	// The last piece may reach past the elements.
	pad := max(off+bytes-s.bytes, 0)
	found := s.file
	found.At, found.Pad = chunk.Range{Off: s.off + off, Len: bytes - pad}, pad
	return found, nil
}
