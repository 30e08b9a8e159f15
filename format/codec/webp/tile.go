package webp

import (
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

func init() { chunk.Register(chunk.WebP, func() chunk.Decompressor { return tileDecoder{} }) }

// tileDecoder reads WebP. A tile is a complete WebP file.
type tileDecoder struct{}

// Decompress implements chunk.Decompressor.
func (tileDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	if len(t.Params) > 0 || t.DType != chunk.Uint8 {
		return fault.New(fault.Corrupt, "webp", "not the parameters of this codec")
	}
	return Decode(dst, src, t.Width, t.Height, t.Bands)
}
