package codecs

import (
	"math/bits"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
)

// Bits of the first byte of the header. The lowest two bits are the logarithm of the width.
const (
	partitionPreset    = 1 << 2 // the partitions are a preset, whose number follows in this byte
	partitionFromZero  = 1 << 3 // the first one begins at 0
	partitionPowersOf2 = 1 << 5 // sizes are given by their logarithms
)

// partitionPresets are the logarithms of the sizes of well-known partitions, and where they begin.
var partitionPresets = [3]struct {
	start uint64
	from  int // logarithm of the first size past same
	same  int // so many partitions of the first size come first
	size  int // its logarithm
	count int
}{
	{start: 1, count: 32},                  // of powers of two: 1, 2-3, 4-7, ...
	{same: 16, from: 4, count: 44},         // 0 to 15 each, then 16-31, 32-63, ...
	{same: 1, size: 1, from: 1, count: 16}, // 0-1, 2-3, 4-7, ...
}

// decodePartition builds numbers from the partitions that hold them and their offsets there. The header
// describes the partitions.
func decodePartition(c *Call) error {
	buckets, extra := c.In[0], c.In[1]
	if buckets.Width != 1 || len(c.Header) == 0 {
		return c.Corrupt("buckets of %d bytes, header of %d", buckets.Width, len(c.Header))
	}
	p := &c.w.parts
	if !parsePartitions(p, c.Header) {
		return c.Corrupt("header % x is not a list of partitions", c.Header)
	}
	dst, err := c.Make(0, 1<<(c.Header[0]&3), buckets.Count)
	if err != nil {
		return err
	}
	if !p.Decode(dst, buckets.Data, extra.Data, c.Out[0].Width) {
		return c.Corrupt("partition that does not exist or extra bits end early")
	}
	return nil
}

// parsePartitions reads the partitions of a header. It reports whether the format allows them.
func parsePartitions(partitions *kernel.Partitions, header []byte) bool {
	partitions.Count = 0
	flags := header[0]
	if flags&partitionPreset != 0 {
		return presetPartitions(partitions, int(flags>>3))
	}
	cursor := wire.Cursor{B: header, Off: 1}
	writer := partitionWriter{p: partitions}
	if flags&partitionFromZero == 0 {
		writer.next = cursor.Varint()
	}
	if cursor.Bad {
		return false
	}
	start := writer.next
	var ok bool
	if flags&partitionPowersOf2 != 0 {
		ok = writer.powers(cursor.B[cursor.Off:], int(flags>>6)+3)
	} else {
		ok = writer.sizes(&cursor)
	}
	return ok && (partitions.Count > 1 || partitions.Count == 1 && start != 0)
}

// presetPartitions adds the partitions of preset k.
func presetPartitions(p *kernel.Partitions, k int) bool {
	if k >= len(partitionPresets) {
		return false
	}
	preset := partitionPresets[k]
	base := preset.start
	for i := range preset.count {
		log := preset.size
		if i >= preset.same {
			log = preset.from + i - preset.same
		}
		base = p.Add(base, 1<<log)
	}
	return true
}

// partitionWriter adds partitions one after the other.
type partitionWriter struct {
	p       *kernel.Partitions
	next    uint64 // where the next partition begins
	wrapped bool   // the last partition ended at 2^64 or past it
}

// add adds a partition. Partitions lie within 64 bits; only the last may end exactly at 2^64.
func (w *partitionWriter) add(size uint64) bool {
	if size == 0 || w.wrapped || w.p.Count == len(w.p.Base) {
		return false
	}
	next := w.p.Add(w.next, size)
	w.wrapped = next < w.next
	w.next = next
	return !w.wrapped || next == 0
}

// powers adds partitions whose sizes are powers of 2. The exponents are packed into width bits each, below
// the highest bit that is set, which marks the end.
func (w *partitionWriter) powers(packed []byte, width int) bool {
	if len(packed) == 0 || packed[len(packed)-1] == 0 {
		return false
	}
	used := 8*len(packed) - 9 + bits.Len8(packed[len(packed)-1])
	if used%width != 0 {
		return false
	}
	reader := wire.BitReader{B: packed}
	for range used / width {
		if log := reader.Next(width); log > 63 || !w.add(1<<log) {
			return false
		}
	}
	return true
}

// sizes adds partitions whose sizes are varints that fill the rest of the header.
func (w *partitionWriter) sizes(h *wire.Cursor) bool {
	for h.Left() > 0 {
		if size := h.Varint(); h.Bad || !w.add(size) {
			return false
		}
	}
	return true
}
