package tiff

import (
	"strconv"

	"github.com/chaski-eo/chaski/format/chunk"
)

// PhotometricInterpretation values.
const (
	photometricWhiteIsZero = 0
	photometricBlackIsZero = 1
	photometricRGB         = 2
	photometricPalette     = 3
	photometricMask        = 4
	photometricCMYK        = 5
	photometricYCbCr       = 6
)

// Compressions that are read.
const (
	compNone       = 1
	compLZW        = 5
	compJPEG       = 7
	compDeflate    = 8
	compPackBits   = 32773
	compOldDeflate = 32946
	compLERC       = 34887
	compLZMA       = 34925
	compZstd       = 50000
	compWebP       = 50001
)

// codecs are the codecs of the compressions that are read.
var codecs = map[uint16]chunk.Codec{
	compNone: chunk.Raw, compZstd: chunk.Zstd, compDeflate: chunk.Deflate, compOldDeflate: chunk.Deflate,
	compLZW: chunk.LZW, compPackBits: chunk.PackBits, compJPEG: chunk.JPEG,
	compLERC: chunk.LERC, compWebP: chunk.WebP, compLZMA: chunk.LZMA,
}

// compressionNames are for messages and Meta.
var compressionNames = map[uint16]string{
	compNone: "none", 2: "CCITT RLE", 3: "CCITT fax 3", 4: "CCITT fax 4", compLZW: "LZW",
	6: "old JPEG", compJPEG: "JPEG",
	compDeflate: "deflate", compPackBits: "PackBits", compOldDeflate: "old deflate", 34661: "JBIG", 34712: "JPEG 2000",
	compLERC: "LERC", compLZMA: "LZMA", compZstd: "zstd", compWebP: "WebP",
	50002: "JPEG XL", 52546: "JPEG XL", 60000: "OpenZL",
}

// gdalReads are compressions that GDAL reads and this package does not.
var gdalReads = []uint16{2, 3, 4, 6, 34661, 50002, 52546}

// CompressionName returns the name of a Compression value, or its number.
func CompressionName(c uint16) string {
	if name := compressionNames[c]; name != "" {
		return name
	}
	return strconv.Itoa(int(c))
}
