package geozl

import (
	"encoding/binary"
	"slices"

	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/planes"
)

// maxBlock bounds a block, which needs scratch memory of its size: 64 MiB, a quarter of the default output.
const maxBlock = 64 << 20

// decodeBlocked decompresses blocks of transposed numbers. Each block is its size and a zstd frame without
// the magic number. The header is a version (1), the width of the numbers, two zeros, the size of a block
// and the count of numbers.
func decodeBlocked(c *openzl.Call) error {
	header, src := c.Header, c.In[0].Data
	if len(header) != 16 || header[0] != 1 || header[2]|header[3] != 0 {
		return c.Corrupt("header % x", header)
	}
	width, block := int(header[1]), int(binary.LittleEndian.Uint32(header[4:]))
	count := binary.LittleEndian.Uint64(header[8:])
	if !cast.IsWidth(width) || block < width || block > maxBlock || block%width != 0 {
		return c.Corrupt("blocks of %d bytes of numbers of %d", block, width)
	}
	// A block of at least three bytes produces at most 128 KiB, so a byte produces less than 64 KiB.
	if (count == 0) != (len(src) == 0) || count > uint64(len(src))<<16 {
		return c.Corrupt("%d numbers in %d bytes", count, len(src))
	}
	dst, err := c.Make(0, width, int(count))
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		content := min(block, len(dst))
		if len(src) < 4 || uint64(binary.LittleEndian.Uint32(src)) > uint64(len(src)-4) {
			return c.Corrupt("block ends early")
		}
		size := int(binary.LittleEndian.Uint32(src))
		frame := src[4 : 4+size]
		out := dst[:content]
		if width > 1 {
			if out, err = c.Scratch(content); err != nil {
				return err
			}
		}
		if err := c.Unzstd(slices.Clip(out), frame); err != nil {
			return err
		}
		if width > 1 {
			planes.Join(dst[:content], out, width)
		}
		dst, src = dst[content:], src[4+size:]
	}
	if len(src) > 0 {
		return c.Corrupt("%d bytes after the last block", len(src))
	}
	return nil
}
