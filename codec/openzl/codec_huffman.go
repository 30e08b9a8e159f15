package openzl

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/codec/openzl/internal/kernel"
)

// entropyHeader reads the header of the entropy codecs: one byte, and the number of symbols in one
// to eight bytes.
func (c *call) entropyHeader() (byte, int, error) {
	if len(c.header) < 2 || len(c.header) > 9 {
		return 0, 0, c.fault("header of %d bytes", len(c.header))
	}
	var n uint64
	for i, b := range c.header[1:] {
		n |= uint64(b) << (8 * i)
	}
	if n < 2 || n > 1<<40 {
		return 0, 0, c.fault("%d symbols", n)
	}
	return c.header[0], int(n), nil
}

// decodeHuffman decodes byte symbols from one or four streams. The first input are the symbols'
// weights.
func decodeHuffman(c *call) error {
	weights, src := c.in[0], c.in[1].data
	flags, n, err := c.entropyHeader()
	if err != nil {
		return err
	}
	if weights.width != 1 || n > 8*len(src) {
		return c.fault("weights of %d bytes, %d symbols in %d bytes", weights.width, n, len(src))
	}
	if !c.d.huf.Build(weights.data) {
		return c.fault("%d weights are no code", weights.count)
	}
	dst, err := c.make(0, 1, n)
	if err != nil {
		return err
	}
	ok := false
	if flags&1 != 0 {
		ok = c.d.huf.Decode4(dst, src)
	} else {
		ok = c.d.huf.Decode1(dst, src)
	}
	if !ok {
		return c.fault("streams do not hold exactly %d symbols", n)
	}
	return nil
}

// decodeHuffmanStruct decodes two-byte symbols from one or four streams, each of which stands after
// the number of its symbols and of its bytes.
func decodeHuffmanStruct(c *call) error {
	weights, src := c.in[0], c.in[1].data
	flags, n, err := c.entropyHeader()
	if err != nil {
		return err
	}
	if weights.width != 1 || weights.count > 1<<16 || n > 8*len(src) {
		return c.fault("%d weights of %d bytes, %d symbols in %d bytes", weights.count, weights.width, n, len(src))
	}
	log, ok := kernel.HuffmanLog(weights.data, kernel.MaxHuffman16Bits)
	if !ok {
		return c.fault("%d weights are no code", weights.count)
	}
	c.d.wide = resize(c.d.wide, 1<<log)
	kernel.BuildHuffman16(c.d.wide, weights.data, log)
	dst, err := c.make(0, 2, n)
	if err != nil {
		return err
	}
	streams := 1
	if flags&1 != 0 {
		streams = 4
	}
	if !huffman16Streams(dst, src, c.d.wide, log, streams) {
		return c.fault("streams do not hold exactly %d symbols", n)
	}
	return nil
}

// huffman16Streams fills dst with two-byte symbols from streams, each of which stands after the
// numbers of its symbols and its bytes, and reports whether that takes all of src.
func huffman16Streams(dst, src []byte, table []uint32, log, streams int) bool {
	for range streams {
		if len(src) < 8 {
			return false
		}
		symbols, size := uint64(binary.LittleEndian.Uint32(src)), uint64(binary.LittleEndian.Uint32(src[4:]))
		src = src[8:]
		if 2*symbols > uint64(len(dst)) || size > uint64(len(src)) ||
			!kernel.DecodeHuffman16(dst[:2*symbols], src[:size], table, log) {
			return false
		}
		dst, src = dst[2*symbols:], src[size:]
	}
	return len(dst) == 0 && len(src) == 0
}
