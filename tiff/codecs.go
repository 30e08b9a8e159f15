package tiff

import (
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// The codecs of nearly all TIFFs are here, and stop early. Packages below format/codec decompress the others: a program
// imports those that it needs, or loader/formats.
func init() {
	chunk.Register(chunk.Zstd, func() chunk.Decompressor { return zstdDecoder{zstd.New()} })
	chunk.Register(chunk.Deflate, func() chunk.Decompressor { return new(deflateDecoder) })
	chunk.Register(chunk.LZW, func() chunk.Decompressor { return new(lzwDecoder) })
	chunk.Register(chunk.PackBits, func() chunk.Decompressor { return packBitsDecoder{} })
	chunk.Register(chunk.YCbCr, func() chunk.Decompressor { return new(yCbCrDecoder) })
}
