package tiff

import (
	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/codec/ccitt"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// ccitt reads the scheme of bilevel codes, which is the one byte of Params.
func (p *parser) ccitt(x *chunk.Index) {
	const twoD = 1 // bit of T4Options
	compression, options := p.Uint(ifd.TagCompression, compNone), p.Uint(ifd.TagT4Options, 0)
	switch {
	case p.Err != nil:
		return
	case x.ChunkB != 1:
		p.Fail(fault.Unsupported, ifd.TagCompression, "compression %s: chunks of %d bands",
			CompressionName(uint16(compression)), x.ChunkB)
	case x.Packed != 1 && !x.Bits:
		p.Fail(fault.Unsupported, ifd.TagBitsPerSample, "compression %s: samples that do not have 1 bit",
			CompressionName(uint16(compression)))
	}
	scheme := ccitt.Scheme(compression) // 2, 3 or 4
	if scheme == ccitt.Group3 && options&twoD != 0 {
		scheme = ccitt.Group3TwoD
	}
	x.Params = []byte{byte(scheme)}
}

// ccittDecoder reads bilevel codes into packed rows of one bit a pixel.
type ccittDecoder struct{ d ccitt.Decoder }

// Decompress implements chunk.Decompressor.
func (d *ccittDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	if len(t.Params) != 1 || t.DType != chunk.Uint8 || t.Bands != 1 ||
		len(dst) != (t.Width+7)/8*t.Height { // an index may say that samples have 8 bits
		return fault.New(fault.Corrupt, "ccitt", fault.NoOffset, "not the parameters of this codec")
	}
	return d.d.Decode(dst, src, ccitt.Scheme(t.Params[0]), t.Width, t.Rows, t.Least)
}
