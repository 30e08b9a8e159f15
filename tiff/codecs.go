package tiff

import (
	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// Codecs returns the decompressors for TIFF files. Those of zstd, deflate, LZW and PackBits are
// chunk.StreamDecompressors, and these and LZMA's stop early; the others are for images.
func Codecs() chunk.Codecs {
	codecs := chunk.Codecs{
		chunk.Zstd:     func() chunk.Decompressor { return zstdDecoder{zstd.New()} },
		chunk.Deflate:  func() chunk.Decompressor { return new(deflateDecoder) },
		chunk.LZW:      func() chunk.Decompressor { return new(lzwDecoder) },
		chunk.PackBits: func() chunk.Decompressor { return packBitsDecoder{} },
		chunk.JPEG:     func() chunk.Decompressor { return new(jpegDecoder) },
		chunk.LERC:     func() chunk.Decompressor { return new(lercDecoder) },
		chunk.WebP:     func() chunk.Decompressor { return webpDecoder{} },
		chunk.LZMA:     func() chunk.Decompressor { return new(lzmaDecoder) },
	}
	codecs[chunk.YCbCr] = func() chunk.Decompressor { return &yCbCrDecoder{codecs: codecs} }
	return codecs
}
