package geozl

import (
	"encoding/binary"
	"slices"

	"github.com/chaski-eo/chaski/codec/openzl"
	"github.com/chaski-eo/chaski/internal/planes"
)

// maxBlock bounds a block, which needs scratch memory of its size: 64 MiB, a quarter of the default output.
const maxBlock = 64 << 20

// decodeBlocked decompresses blocks of transposed numbers. Each block is its size and a zstd frame without
// the magic number. The header is a version (1), the width of the numbers, two zeros, the size of a block
// and the count of numbers.
func decodeBlocked(c *openzl.Call) error {
	h, src := c.Header, c.In[0].Data
	if len(h) != 16 || h[0] != 1 || h[2]|h[3] != 0 {
		return c.Corrupt("header % x", h)
	}
	width, block := int(h[1]), int(binary.LittleEndian.Uint32(h[4:]))
	count := binary.LittleEndian.Uint64(h[8:])
	if !isWidth(width) || block < width || block > maxBlock || block%width != 0 {
		return c.Corrupt("blocks of %d bytes of numbers of %d", block, width)
	}
	// A block of at least three bytes produces at most 128 KiB, so that a byte produces less than 64 KiB.
	if (count == 0) != (len(src) == 0) || count > uint64(len(src))<<16 {
		return c.Corrupt("%d numbers in %d bytes", count, len(src))
	}
	dst, err := c.Make(0, width, int(count))
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		n := min(block, len(dst))
		if len(src) < 4 || uint64(binary.LittleEndian.Uint32(src)) > uint64(len(src)-4) {
			return c.Corrupt("block ends early")
		}
		size := int(binary.LittleEndian.Uint32(src))
		frame := src[4 : 4+size]
		out := dst[:n]
		if width > 1 {
			if out, err = c.Scratch(n); err != nil {
				return err
			}
		}
		if err := c.Unzstd(slices.Clip(out), frame); err != nil {
			return err
		}
		if width > 1 {
			planes.Join(dst[:n], out, width)
		}
		dst, src = dst[n:], src[4+size:]
	}
	if len(src) > 0 {
		return c.Corrupt("%d bytes after the last block", len(src))
	}
	return nil
}
