package pixels

import (
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/format/chunk"
)

// Sink receives decoded chunks.
type Sink interface {
	// Put receives the samples of chunk i of x, of shape x.DecodedShape(i) and dtype x.DType. They are valid
	// until Put returns. Pixels past the last one of the box that is read have arbitrary content, because
	// decoding stops there. x is the index that is read or, for chunks that are decoded in pieces, the index
	// of their pieces (chunk.Index.InPieces).
	Put(x *chunk.Index, i int, samples []byte)
}

// planarSink is a Sink that may take chunks as residuals.
type planarSink interface {
	// planar returns what writes the first rows of chunk i of x from residuals. rows is 0 if Put is to write them.
	planar(x *chunk.Index, i int) (planar einops.Planar, rows int)
}

// both is a Sink that puts chunks into two.
type both struct{ image, mask Sink }

// Put implements Sink.
func (b both) Put(x *chunk.Index, i int, samples []byte) {
	b.image.Put(x, i, samples)
	b.mask.Put(x, i, samples)
}

// Nowhere is a Sink that discards chunks. It serves checks of whether an asset can be read.
type Nowhere struct{}

// Put implements Sink.
func (Nowhere) Put(*chunk.Index, int, []byte) {}
