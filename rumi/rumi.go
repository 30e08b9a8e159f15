// Package rumi reads and writes rumi files of generations 1 to 3: tile-interleaved images whose chunks are
// OpenZL frames. A header blob holds everything that reading windows needs, so a catalog
// that stores the blob never opens the file for it.
//
// All are little-endian, with the header and one directory of a BigTIFF before the pixels; generation 3 has a
// header of its own. Frames follow each other without gaps, positions of the grid row by row.
//
// Generation 1 (rumi-eo 0.8): PlanarConfiguration 2, Compression 60000, Predictor 1, no sparse tiles. Each
// band of a grid position has one frame; the bands of a position lie side by side; edge tiles are padded.
// The blob has 26 bytes and one count per frame. rumi-eo 0.12 to 0.14 write the same but cut edge tiles, and
// begin the blob with another magic number. Both forms of a frame are read whatever the blob says, because
// the size of a frame tells its form.
//
// Generation 2 (rumi-eo 0.16, files named .rumi): exactly 11 tags, without Compression; values follow the
// directory in the order of the tags. A frame holds one band of a grid position (a tile) or all bands (a
// cell). Edge frames are cut. The blob has 28 bytes and the counts in the fewest bits.
//
// Generation 3 (rumi-eo 0.18 and later): begins with "RUMI"; two tags more, for the frame unit (Unit) and the
// steps of time, which are an axis of the image. A trailer behind the frames names the bands and the times
// (Trailer). The blob has 32 bytes before the counts.
package rumi

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/rumis"
)

const (
	blobVersion = 1
	blobHead    = 26
)

func init() {
	rumis.Open, rumis.Meta = Open, Meta
	rumis.Index = func(ctx context.Context, f *ifd.File, maxChunk int) (*chunk.Index, []byte, error) {
		header, err := HeaderOf(ctx, f, maxChunk)
		if err != nil {
			return nil, nil, err
		}
		return header.Index(), header.Blob(), nil
	}
	rumis.ParseBlob = func(b []byte, maxChunk int) (*chunk.Index, error) {
		header, err := ParseLimit(b, maxChunk)
		if err != nil {
			return nil, err
		}
		return header.Index(), nil
	}
}

// Header is a parsed header blob. It is immutable and safe for concurrent use.
type Header struct {
	Shape        [3]int // bands, height, width; bands of one step of time
	Times        int    // steps of time, 1 before generation 3
	DType        chunk.DType
	TileH, TileW int
	Generation   int  // 1 to 3
	Unit         Unit // as in the blob; for an image of one band generation 2 has either
	Cells        bool // a frame holds all bands and steps of time of a grid position

	index chunk.Index
}

func newHeader(x chunk.Index, generation int, unit Unit) *Header {
	return &Header{
		Shape: [3]int{x.StepBands(), x.Height, x.Width}, Times: x.Steps(), DType: x.DType, TileH: x.ChunkH,
		TileW: x.ChunkW, Generation: generation, Unit: unit, Cells: unit.isPosition(), index: x,
	}
}

// IsBlob reports whether b begins like a header blob that Parse reads.
func IsBlob(b []byte) bool { return rumis.IsBlob(b) }

// Parse reads a header blob of any generation, without any I/O. All numbers are little-endian:
//
//	offset  type     field
//	0       u32      magic: 0x333C333C in generation 1 (0x796D6173 of rumi-eo 0.12 to 0.14),
//	                 0x45564F4C in generations 2 and 3
//	4       u16      version, 1
//	6       u32      image width, 1 to 2^31-1
//	10      u32      image height, 1 to 2^31-1
//	14      u16      tile width, at least 1
//	16      u16      tile height, at least 1
//	18      u16      bands B, at least 1
//	20      u8       bits a sample (both components of a complex one)
//	21      u8       sample format, TIFF's; from generation 2 on also a private one, 100 to 106
//
// where generation 3 has a u32 at 14, the steps of time T, and all that follows four bytes later;
// then, in generation 1:
//
//	22      u32      offset of the first frame in the file
//	26      u32 × N  bytes of each frame, at least 1
//
// N is across · down · B with across = ceil(width / tile width), down likewise; the frame of (row, col,
// band) is number (row·across + col)·B + band, and frames follow each other without gaps. In generation 2:
//
//	22      u8       frame unit: 0 a tile, as in generation 1; 1 a cell; there are across · down cells
//	23      u32      bytes of the smallest frame, at least 1
//	27      u8       w, 0 to 32: bits of what a frame has above that
//	28      bits     that number for each frame, w bits, packed from the least significant bit on
//
// w is the smallest possible, spare bits are 0, and the first frame's offset follows from B and N. Generation 3
// has ten frame units: see Unit. N is across · down, and B · T times that if frames are tiles.
//
// A blob of one of these two generations is hardly ever one of the other, too. If it is, Parse returns
// ErrEither, and the file says which it is: see HeaderOf.
//
// Parse refuses chunks of more than chunk.DefaultMaxBytes decoded bytes, and more than 2^20 frames of zero bits
// each, with Limit. b is not kept.
func Parse(b []byte) (*Header, error) { return ParseLimit(b, chunk.DefaultMaxBytes) }

// ParseLimit is Parse with another limit of a decoded chunk in bytes.
func ParseLimit(b []byte, maxChunk int) (*Header, error) {
	bad := func(off int64, format string, args ...any) (*Header, error) {
		return nil, fault.At(fault.Corrupt, "header blob", off, format, args...)
	}
	le := binary.LittleEndian
	if len(b) >= 4 && le.Uint32(b) == rumis.Blob2 {
		return parseEither(b, maxChunk)
	}
	if len(b) < blobHead {
		return bad(0, "%d bytes", len(b))
	}
	if magic := le.Uint32(b); magic != rumis.Blob1 && magic != rumis.BlobCut {
		return bad(0, "magic %#x", magic)
	}
	if version := le.Uint16(b[4:]); version != blobVersion {
		return nil, fault.At(fault.Unsupported, "header blob", 4, "version %d", version)
	}
	index, err := blobGrid(b, 1)
	if err != nil {
		return nil, err
	}
	counts := b[blobHead:]
	tiles := int64(index.Across()) * int64(index.Down()) // below 2^62
	frames := int64(len(counts) / 4)
	if len(counts)%4 != 0 || tiles > frames || tiles*int64(index.Bands) != frames {
		return bad(blobHead, "%d bytes of counts for %d positions with %d bands", len(counts), tiles, index.Bands)
	}
	index.Ranges = make([]chunk.Range, len(counts)/4)
	off := int64(le.Uint32(b[22:]))
	// No overflow of off, since there are fewer than 2^31 frames of less than 4 GiB.
	for i := range index.Ranges {
		size := int64(le.Uint32(counts[4*i:]))
		if size == 0 {
			return bad(int64(blobHead+4*i), "frame %d is empty", i)
		}
		index.Ranges[i] = chunk.Range{Off: off, Len: size}
		off += size
	}
	if err := index.Validate(-1, maxChunk); err != nil {
		return nil, err
	}
	return newHeader(*index, 1, UnitTile), nil
}

// ErrEither is the error for a blob that is one of generation 2 and one of generation 3.
var ErrEither error = fault.At(fault.Unsupported, "header blob", 14,
	"a header of generation 2 or 3: only the file says which")

// parseEither reads a blob of generation 2 or 3.
func parseEither(b []byte, maxChunk int) (*Header, error) {
	if len(b) >= 18 && binary.LittleEndian.Uint16(b[16:]) == 0 {
		// Generation 2 is excluded: its tiles would have no height.
		return parsePacked(b, 3, maxChunk)
	}
	header, err := parsePacked(b, 2, maxChunk)
	later, err3 := parsePacked(b, 3, maxChunk)
	switch {
	case err == nil && err3 == nil:
		return nil, ErrEither
	case err3 == nil:
		return later, nil
	}
	return header, err
}

// blobGrid reads what all generations have at offsets 6 to 21, in generation 3 some of it later.
func blobGrid(b []byte, generation int) (*chunk.Index, error) {
	bad := func(off int64, format string, args ...any) (*chunk.Index, error) {
		return nil, fault.At(fault.Corrupt, "header blob", off, format, args...)
	}
	le := binary.LittleEndian
	width, height := le.Uint32(b[6:]), le.Uint32(b[10:])
	if width < 1 || width > chunk.MaxSide || height < 1 || height > chunk.MaxSide {
		return bad(6, "image of %d by %d pixels", height, width)
	}
	index := newIndex(generation)
	index.Width, index.Height = int(width), int(height)
	pos := shift(generation)
	index.ChunkW, index.ChunkH, index.Bands = int(le.Uint16(b[pos+14:])), int(le.Uint16(b[pos+16:])),
		int(le.Uint16(b[pos+18:]))
	if index.ChunkW < 1 || index.ChunkH < 1 {
		return bad(int64(pos+14), "tiles of %d by %d pixels", index.ChunkH, index.ChunkW)
	}
	if index.Bands < 1 {
		return bad(int64(pos+18), "no bands")
	}
	if index.DType = dtypeOf(generation, uint64(b[pos+21]), uint64(b[pos+20])); index.DType == chunk.Invalid {
		return bad(int64(pos+20), "samples of %d bits with sample format %d", b[pos+20], b[pos+21])
	}
	index.LowBits = generation == 3 && index.DType.Bits() < 8
	return index, nil
}

// newIndex returns an index with the properties that all files of a generation share. Chunks are tiles.
func newIndex(generation int) *chunk.Index {
	cut := generation > 1
	return &chunk.Index{ChunkB: 1, Codec: chunk.OpenZL, Predictor: chunk.NoPredictor, CutEdge: cut, CutRight: cut}
}

// Index returns the chunk index of the image.
func (h *Header) Index() *chunk.Index { return &h.index }

// Frames returns the byte ranges of the frames in the order of the file.
func (h *Header) Frames() []chunk.Range { return h.Unit.fileOrder(&h.index) }

// Order returns the axes along which a grid position has several frames, such as "b t".
func (h *Header) Order() []string {
	var order []string
	if h.Times > 1 && h.Unit == UnitTileTime {
		order = append(order, "t")
	}
	if h.Shape[0] > 1 && !h.Cells {
		order = append(order, "b")
	}
	if h.Times > 1 && h.Unit == UnitTile {
		order = append(order, "t")
	}
	return order
}

// Blob returns the header blob. A blob of rumi-eo 0.12 to 0.14 becomes the equivalent one of 0.8.
func (h *Header) Blob() []byte { return blobOf(&h.index, h.Generation, h.Unit) }

func blobOf(x *chunk.Index, generation int, unit Unit) []byte {
	if generation == 1 {
		return appendBlob(nil, x)
	}
	return appendPacked(nil, x, generation, unit)
}

// appendBlob appends the blob of an index as Parse reads it in generation 1. The first frame must lie
// below 4 GiB, and every frame be smaller than that.
func appendBlob(dst []byte, x *chunk.Index) []byte {
	le := binary.LittleEndian
	dst = appendGrid(dst, x, rumis.Blob1, 1)
	dst = le.AppendUint32(dst, uint32(x.Ranges[0].Off))
	for _, frame := range x.Ranges {
		dst = le.AppendUint32(dst, uint32(frame.Len))
	}
	return dst
}

// appendGrid appends what all generations have at offsets 0 to 21, and the steps of time of generation 3.
func appendGrid(dst []byte, x *chunk.Index, magic uint32, generation int) []byte {
	le := binary.LittleEndian
	format, bits := encodingOf(generation, x.DType)
	dst = le.AppendUint32(dst, magic)
	dst = le.AppendUint16(dst, blobVersion)
	dst = le.AppendUint32(dst, uint32(x.Width))
	dst = le.AppendUint32(dst, uint32(x.Height))
	if generation == 3 {
		dst = le.AppendUint32(dst, uint32(x.Steps()))
	}
	dst = le.AppendUint16(dst, uint16(x.ChunkW))
	dst = le.AppendUint16(dst, uint16(x.ChunkH))
	dst = le.AppendUint16(dst, uint16(x.StepBands()))
	return append(dst, byte(bits), byte(format))
}

const maxU32 = math.MaxUint32
