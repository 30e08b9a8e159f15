package codecs

import (
	"bytes"
	"math/bits"

	frames "github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// magiclessVersion is the first version whose zstd frames are stored without their magic number.
const magiclessVersion = 9

// maxFrameHead is the size of the longest header of a frame behind its magic number (RFC 8878, 3.1.1.1).
const maxFrameHead = 14

// decodeZstd decompresses one zstd frame (RFC 8878). The stream is the width of the elements, then the frame
// without its magic number, which must state the size of its content. It serves zstd_fixed too.
func decodeZstd(c *Call) error {
	header := wire.Cursor{B: c.In[0].Data}
	width := header.Varint()
	if header.Bad || width == 0 || bits.Len64(width) > 31 {
		return c.Corrupt("element width %d", width)
	}
	src := header.B[header.Off:]
	if c.Version < magiclessVersion {
		if !bytes.HasPrefix(src, []byte(zstdMagic)) {
			return c.Corrupt("no zstd frame")
		}
		src = src[len(zstdMagic):]
	}
	c.w.framed = append(append(c.w.framed[:0], zstdMagic...), src[:min(len(src), maxFrameHead)]...)
	var head frames.Header
	if err := head.Decode(c.w.framed); err != nil || !head.HasFCS {
		return c.Corrupt("zstd frame without the size of its content")
	}
	size := head.FrameContentSize
	// A block has at least three bytes and produces at most 128 KiB, so size is bounded by the
	// bytes present.
	if size%width != 0 || size > uint64(len(src)/3+1)<<17 {
		return c.Corrupt("content of %d bytes, elements of %d, from %d bytes", size, width, len(src))
	}
	spare := zstd.Spare
	if zstd.Exact() {
		// Without spare bytes the content can be decoded to where it needs to be.
		spare = 0
	}
	dst, err := c.makeSpare(0, int(width), int(size/width), spare)
	if err != nil {
		return err
	}
	return c.Unzstd(dst, src)
}
