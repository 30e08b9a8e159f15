package chunk

import (
	"bufio"
	"math"
)

// pieceBytes is the largest piece in bytes, unless a row has more. It is the size of one read of an
// engine, so decoding in pieces holds no more samples than stored bytes.
const pieceBytes = 4 << 20

// StreamDecompressor is a Decompressor that can decode a chunk from front to back in parts. The codecs for
// which Codec.Streams reports true must have one.
type StreamDecompressor interface {
	Decompressor
	// Stream begins to decode the chunk whose stored bytes src yields. maxWindow is the most memory, in bytes, that a
	// codec may keep of the content for later references into it. It returns the same errors as Stream.Fill.
	Stream(src *bufio.Reader, maxWindow int) (Stream, error)
}

// streamBytes are the most bytes that a Stream of a codec holds. Of zstd its window adds to them.
var streamBytes = [numCodecs]int64{
	Zstd:     2 << 20,  // 1.5 MB of buffers and tables
	Deflate:  64 << 10, // a window of 32 KiB and tables
	LZW:      64 << 10, // a table of 28 KiB
	PackBits: 64 << 10, // a few words
}

// StreamBytes returns the most bytes that a Stream of the codec holds, for windows of up to maxWindow bytes.
func (c Codec) StreamBytes(maxWindow int) int64 {
	if c == Zstd {
		return streamBytes[c] + int64(maxWindow)
	}
	return streamBytes[c]
}

// Stream decodes one chunk from front to back. It accepts what Decompress accepts of the same bytes, up to
// the place where the caller stops. After an error it must only be closed.
type Stream interface {
	// Fill fills p with the next bytes of the content, or returns an error of kind Corrupt, Unsupported or
	// Limit. If src failed, the error says nothing about the chunk.
	Fill(p []byte) error
	// End checks what Decompress checks after the content, such as a checksum. The caller calls it after
	// Fill gave the whole content, and calls Fill no more.
	End() error
	// Close frees the stream's memory.
	Close()
}

// InPieces returns the index of the pieces of x: the same image, whose chunks are cut into pieces of whole
// rows, each of up to 4 MiB or one row. It has no Ranges: pieces have no place of their own in the
// file. It returns nil if chunks are not decoded in pieces: those that decode to at most maxChunk bytes
// are decoded whole, and so are those that cannot be cut, because their codec cannot decode in parts, they
// hold several band planes, or a row has more than maxChunk bytes.
func (x *Index) InPieces(maxChunk int) *Index {
	if x.ChunkFits(maxChunk) || !x.ChunkFits(math.MaxInt) || !x.inRows() {
		return nil
	}
	index := *x
	index.Ranges, index.Mask, index.CutEdge, index.ChunkH = nil, nil, true, 1
	row := index.MaxDecodedBytes()
	if row > maxChunk {
		return nil
	}
	index.ChunkH = min(max(1, min(pieceBytes, maxChunk)/row), x.ChunkH)
	// Pieces must not cross the edges of chunks.
	for x.Down() > 1 && x.ChunkH%index.ChunkH != 0 {
		index.ChunkH--
	}
	return &index
}

// inRows reports whether chunks can be decoded row by row.
func (x *Index) inRows() bool {
	byRow := x.RowsFirst()
	return byRow && x.Codec.Streams() && !x.OfArray() && !x.Reversed
}

// Piece returns the number, in x.InPieces, of the piece of chunk i that begins with the chunk's row y.
func (x *Index) Piece(pieces *Index, i, y int) int {
	box := x.Box(i)
	return ((box.Y0+y)/pieces.ChunkH*x.Across()+box.X0/x.ChunkW)*x.Groups() + i%x.Groups()
}

// Rows decodes the rows of one chunk from the first to the last.
type Rows struct {
	d      *Decoder
	x      *Index
	i      int
	stream Stream // nil for a sparse chunk
	row    int    // bytes of a row
	packed int    // bytes of a row before its bits are spread
	rest   int    // rows that are not decoded yet
	waste  []byte // memory for rows that are not needed
}

// wasteBytes is the size of the memory for rows that are not needed: small enough for the processor's cache.
const wasteBytes = 64 << 10

// Rows begins to decode chunk i of x, whose stored bytes src yields; src is not used if the chunk is sparse.
// maxWindow is as in StreamDecompressor. The chunk must be one that InPieces cuts. The Decoder may be used
// for other chunks meanwhile. The caller must call Close.
func (d *Decoder) Rows(src *bufio.Reader, x *Index, i, maxWindow int) (*Rows, error) {
	b, h, w := x.DecodedShape(i)
	rows := &Rows{d: d, x: x, i: i, row: b * w * x.DType.Size(), rest: h}
	if rows.packed = rows.row; x.isPacked() {
		rows.packed = x.packedRow(b, w)
	}
	if x.Ranges[i].Len == 0 {
		return rows, nil
	}
	codec, err := d.opened.Of(x.Codec)
	if err != nil {
		return nil, inChunk(i, err)
	}
	streams, ok := codec.(StreamDecompressor)
	if !ok {
		panic("chunk: the decompressor of " + x.Codec.String() + " is no StreamDecompressor")
	}
	if rows.stream, err = streams.Stream(src, maxWindow); err != nil {
		return nil, inChunk(i, err)
	}
	return rows, nil
}

// Next fills dst with the next rows, as Decode would: little-endian, in the axis order x.Inner. len(dst)
// must be a multiple of the size of a row, and no more than the rows that are left.
func (r *Rows) Next(dst []byte) error {
	rows := len(dst) / r.row
	if len(dst) != rows*r.row || rows > r.rest {
		panic("chunk: len(dst) is not that of rows of the chunk")
	}
	if r.stream == nil {
		r.rest -= rows
		fillSparse(dst, r.x)
		return nil
	}
	bits := dst[len(dst)-rows*r.packed:]
	if err := r.fill(bits, rows); err != nil {
		return err
	}
	if r.d.Decompressed != nil {
		r.d.Decompressed()
	}
	if r.x.isPacked() {
		bands, _, width := r.x.DecodedShape(r.i)
		r.x.unpack(dst, bits, bands, width)
		return nil
	}
	r.d.unpredict(dst, r.x, r.i)
	return nil
}

// Skip passes over the next n rows, which must be left.
func (r *Rows) Skip(n int) error {
	if n > r.rest {
		panic("chunk: the chunk does not have that many rows")
	}
	if r.stream == nil {
		r.rest -= n
		return nil
	}
	batch := min(max(1, wasteBytes/r.packed), n)
	if need := batch * r.packed; cap(r.waste) < need {
		r.waste = make([]byte, need) // at most a row, or wasteBytes
	}
	for ; n > 0; n -= batch {
		batch = min(batch, n)
		if err := r.fill(r.waste[:batch*r.packed], batch); err != nil {
			return err
		}
	}
	return nil
}

// fill decompresses the next n rows.
func (r *Rows) fill(dst []byte, n int) error {
	if err := r.stream.Fill(dst); err != nil {
		return inChunk(r.i, err)
	}
	if r.rest -= n; r.rest > 0 || n == 0 {
		return nil
	}
	return inChunk(r.i, r.stream.End())
}

// Bytes returns the size of a row in bytes.
func (r *Rows) Bytes() int { return r.row }

// Left returns the number of rows that are not decoded yet.
func (r *Rows) Left() int { return r.rest }

// Close frees the memory of the decompressor.
func (r *Rows) Close() {
	if r.stream != nil {
		r.stream.Close()
	}
}
