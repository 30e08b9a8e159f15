package tiff

import (
	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/codec/webp"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// webp refuses images that libtiff does not write as WebP.
func (p *parser) webp(x *chunk.Index) {
	switch {
	case x.DType != chunk.Uint8 || x.Packed != 0:
		p.Fail(fault.Unsupported, ifd.TagBitsPerSample, "WebP of samples of %d bits",
			p.same(ifd.TagBitsPerSample, x.Bands, 1))
	case x.ChunkB != 3 && x.ChunkB != 4:
		p.Fail(fault.Unsupported, ifd.TagCompression, "compression WebP: chunks of %d bands, it has 3 or 4", x.ChunkB)
	}
}

// webpDecoder reads WebP. A tile is a complete WebP file.
type webpDecoder struct{}

// Decompress implements chunk.Decompressor.
func (webpDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	if len(t.Params) > 0 || t.DType != chunk.Uint8 {
		return fault.New(fault.Corrupt, "webp", fault.NoOffset, "not the parameters of this codec")
	}
	return webp.Decode(dst, src, t.Width, t.Height, t.Bands)
}
