package codecs

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/memory"
)

// entropyHeader reads the header of the entropy codecs: one byte, and the number of symbols in one
// to eight bytes.
func (c *Call) entropyHeader() (byte, int, error) {
	if len(c.Header) < 2 || len(c.Header) > 9 {
		return 0, 0, c.Corrupt("header of %d bytes", len(c.Header))
	}
	symbols := kernel.Word(c.Header[1:])
	if symbols < 2 || symbols > 1<<40 {
		return 0, 0, c.Corrupt("%d symbols", symbols)
	}
	return c.Header[0], int(symbols), nil
}

// decodeHuffman decodes byte symbols from one or four streams. The first input holds the weights of the
// symbols.
func decodeHuffman(c *Call) error {
	weights, src := c.In[0], c.In[1].Data
	flags, symbols, err := c.entropyHeader()
	if err != nil {
		return err
	}
	// A symbol takes at least one bit, so their number is bounded by the bytes present.
	if weights.Width != 1 || symbols > 8*len(src) {
		return c.Corrupt("weights of %d bytes, %d symbols in %d bytes", weights.Width, symbols, len(src))
	}
	if !c.w.huf.Build(weights.Data) {
		return c.Corrupt("%d weights are not a code", weights.Count)
	}
	dst, err := c.Make(0, 1, symbols)
	if err != nil {
		return err
	}
	ok := false
	if flags&1 != 0 {
		ok = c.w.huf.Decode4(dst, src)
	} else {
		ok = c.w.huf.Decode1(dst, src)
	}
	if !ok {
		return c.Corrupt("streams do not hold exactly %d symbols", symbols)
	}
	return nil
}

// decodeHuffmanStruct decodes two-byte symbols from one or four streams. Each stream follows the number of
// its symbols and of its bytes.
func decodeHuffmanStruct(c *Call) error {
	weights, src := c.In[0], c.In[1].Data
	flags, symbols, err := c.entropyHeader()
	if err != nil {
		return err
	}
	if weights.Width != 1 || weights.Count > 1<<16 || symbols > 8*len(src) {
		return c.Corrupt("%d weights of %d bytes, %d symbols in %d bytes", weights.Count, weights.Width, symbols,
			len(src))
	}
	log, ok := kernel.HuffmanLog(weights.Data, kernel.MaxHuffman16Bits)
	if !ok {
		return c.Corrupt("%d weights are not a code", weights.Count)
	}
	c.w.wide = memory.Resize(c.w.wide, 1<<log)
	kernel.BuildHuffman16(c.w.wide, weights.Data, log)
	dst, err := c.Make(0, 2, symbols)
	if err != nil {
		return err
	}
	streams := 1
	if flags&1 != 0 {
		streams = 4
	}
	if !huffman16Streams(dst, src, c.w.wide, log, streams) {
		return c.Corrupt("streams do not hold exactly %d symbols", symbols)
	}
	return nil
}

// huffman16Streams fills dst with two-byte symbols from one or four streams. In front of each stand the numbers of
// its symbols and its bytes. It reports whether that takes all of src.
func huffman16Streams(dst, src []byte, table []uint32, log, streams int) bool {
	var out, in [4][]byte
	for i := range streams {
		if len(src) < 8 {
			return false
		}
		symbols, size := uint64(binary.LittleEndian.Uint32(src)), uint64(binary.LittleEndian.Uint32(src[4:]))
		src = src[8:]
		if 2*symbols > uint64(len(dst)) || size > uint64(len(src)) {
			return false
		}
		out[i], in[i] = dst[:2*symbols], src[:size]
		dst, src = dst[2*symbols:], src[size:]
	}
	if len(dst) > 0 || len(src) > 0 {
		return false
	}
	if streams == 4 {
		return kernel.DecodeHuffman16x4(&out, &in, table, log)
	}
	return kernel.DecodeHuffman16(out[0], in[0], table, log)
}
