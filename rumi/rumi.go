// Package rumi reads and writes rumi files of generation 1: tile-interleaved BigTIFF images whose
// tiles are OpenZL frames, together with a header blob that holds all that is needed to read
// windows of the image, so that a catalog that stores the blob needs no look at the file.
//
// The format as read here: a little-endian BigTIFF with one directory, PlanarConfiguration 2,
// Compression 60000, Predictor 1, no sparse tiles; one frame a band and grid position, the bands of
// a position side by side, positions row by row, without gaps. Edge tiles are padded. The blob is 26
// bytes and one count a frame (see Parse).
//
// Not supported: the later generations of the format (files named .rumi).
package rumi

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/openzl"
	"github.com/chaski-eo/chaski/tiff"
)

// Codecs returns the decoder of the frames.
func Codecs() chunk.Codecs {
	return chunk.Codecs{chunk.OpenZL: func() chunk.Decompressor { return openzl.NewDecoder(openzl.Options{}) }}
}

// DefaultMaxChunk is the limit of a decoded tile, in bytes, that Parse holds a blob to.
const DefaultMaxChunk = tiff.DefaultMaxChunk

const (
	blobMagic   = 0x333C333C
	blobVersion = 1
	blobHead    = 26
)

// Header is what a header blob says. It is immutable and safe for concurrent use.
type Header struct {
	Shape        [3]int // bands, height, width
	DType        chunk.DType
	TileH, TileW int

	index chunk.Index
}

// Parse reads a header blob, without any I/O. All numbers are little-endian:
//
//	offset  type     field
//	0       u32      magic 0x333C333C
//	4       u16      version, 1
//	6       u32      image width, 1 to 2^31-1
//	10      u32      image height, 1 to 2^31-1
//	14      u16      tile width, at least 1
//	16      u16      tile height, at least 1
//	18      u16      bands B, at least 1
//	20      u8       bits a sample (both components of a complex one)
//	21      u8       sample format, TIFF's
//	22      u32      offset of the first frame in the file
//	26      u32 × N  bytes of each frame, at least 1
//
// N is across · down · B with across = ceil(width / tile width), down likewise; the frame of (row, col,
// band) is number (row·across + col)·B + band, and frames follow each other without gaps.
//
// Tiles of more than DefaultMaxChunk decoded bytes are refused with Limit. b is not kept.
func Parse(b []byte) (*Header, error) { return ParseLimit(b, DefaultMaxChunk) }

// ParseLimit is Parse with another limit of a decoded tile in bytes.
func ParseLimit(b []byte, maxChunk int) (*Header, error) {
	bad := func(off int64, format string, args ...any) (*Header, error) {
		return nil, fault.New(fault.Corrupt, "header blob", off, format, args...)
	}
	le := binary.LittleEndian
	if len(b) < blobHead {
		return bad(0, "%d bytes", len(b))
	}
	if m := le.Uint32(b); m != blobMagic {
		return bad(0, "magic %#x", m)
	}
	if v := le.Uint16(b[4:]); v != blobVersion {
		return nil, fault.New(fault.Unsupported, "header blob", 4, "version %d", v)
	}
	w, h := le.Uint32(b[6:]), le.Uint32(b[10:])
	if w < 1 || w > chunk.MaxSide || h < 1 || h > chunk.MaxSide {
		return bad(6, "image of %d by %d pixels", h, w)
	}
	x := chunk.Index{
		Width: int(w), Height: int(h), ChunkW: int(le.Uint16(b[14:])), ChunkH: int(le.Uint16(b[16:])),
		Bands: int(le.Uint16(b[18:])), ChunkB: 1,
		DType: tiff.DTypeOf(uint64(b[21]), uint64(b[20])),
		Codec: chunk.OpenZL, Predictor: chunk.NoPredictor,
	}
	if x.ChunkW < 1 || x.ChunkH < 1 {
		return bad(14, "tiles of %d by %d pixels", x.ChunkH, x.ChunkW)
	}
	if x.Bands < 1 {
		return bad(18, "no bands")
	}
	if x.DType == chunk.Invalid {
		return bad(20, "samples of %d bits with sample format %d", b[20], b[21])
	}
	counts := b[blobHead:]
	tiles := int64(x.Across()) * int64(x.Down()) // below 2^62
	if n := len(counts) / 4; len(counts)%4 != 0 || tiles > int64(n) || tiles*int64(x.Bands) != int64(n) {
		return bad(blobHead, "%d bytes of counts for %d positions with %d bands", len(counts), tiles, x.Bands)
	}
	x.Ranges = make([]chunk.Range, len(counts)/4)
	off := int64(le.Uint32(b[22:]))
	for i := range x.Ranges { // fewer than 2^31 frames of less than 4 GiB: no overflow
		n := int64(le.Uint32(counts[4*i:]))
		if n == 0 {
			return bad(int64(blobHead+4*i), "frame %d is empty", i)
		}
		x.Ranges[i] = chunk.Range{Off: off, Len: n}
		off += n
	}
	if err := x.Validate(-1, maxChunk); err != nil {
		return nil, err
	}
	return &Header{Shape: [3]int{x.Bands, x.Height, x.Width}, DType: x.DType, TileH: x.ChunkH, TileW: x.ChunkW, index: x}, nil
}

// Index returns the chunk index of the image.
func (h *Header) Index() *chunk.Index { return &h.index }

// Check checks that all frames lie within a file of the given size.
func (h *Header) Check(fileSize int64) error {
	last := h.index.Ranges[len(h.index.Ranges)-1]
	if end := last.Off + last.Len; end > fileSize {
		return fault.New(fault.Corrupt, "header blob", fault.NoOffset, "frames end at %d, the file at %d", end, fileSize)
	}
	return nil
}

// appendBlob appends the blob of an index as Parse makes it. The first frame must lie below 4 GiB, and
// every frame be smaller than that.
func appendBlob(dst []byte, x *chunk.Index) []byte {
	le := binary.LittleEndian
	format, bits := tiff.FormatOf(x.DType)
	dst = le.AppendUint32(dst, blobMagic)
	dst = le.AppendUint16(dst, blobVersion)
	dst = le.AppendUint32(dst, uint32(x.Width))
	dst = le.AppendUint32(dst, uint32(x.Height))
	dst = le.AppendUint16(dst, uint16(x.ChunkW))
	dst = le.AppendUint16(dst, uint16(x.ChunkH))
	dst = le.AppendUint16(dst, uint16(x.Bands))
	dst = append(dst, byte(bits), byte(format))
	dst = le.AppendUint32(dst, uint32(x.Ranges[0].Off))
	for _, r := range x.Ranges {
		dst = le.AppendUint32(dst, uint32(r.Len))
	}
	return dst
}

const maxU32 = math.MaxUint32
