package xz

import "github.com/chaski-eo/chaski/format/chunk"

func init() { chunk.Register(chunk.LZMA, func() chunk.Decompressor { return tileDecoder{} }) }

// tileDecoder reads xz streams, which libtiff calls LZMA.
type tileDecoder struct{}

// Decompress fills dst. A stream may hold more, because some writers pad the last strip. It verifies no check behind
// the bytes that are needed.
func (tileDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	return Decode(dst[:t.Need], src)
}
