package tiff

import (
	"cmp"
	"strconv"

	"github.com/chaski-eo/chaski/format/chunk"
)

// PhotometricInterpretation values.
const (
	PhotometricWhiteIsZero = 0
	PhotometricBlackIsZero = 1
	PhotometricRGB         = 2
	PhotometricPalette     = 3
	PhotometricMask        = 4
	PhotometricCMYK        = 5
	PhotometricYCbCr       = 6
)

// Compressions that code names.
const (
	compNone    = 1
	compDeflate = 8
	compZstd    = 50000
)

// compression is a value of the tag Compression.
type compression struct {
	number uint16
	name   string // for messages and Meta
	codec  chunk.Codec
	plain  bool // the tag Predictor has no effect, as in libtiff
	unread bool // this package does not read it
	gdal   bool // but GDAL does
}

// compressions are the values that have a name.
var compressions = []compression{
	{number: compNone, name: "none", codec: chunk.Raw, plain: true},
	{number: 2, name: "CCITT RLE", unread: true, gdal: true},
	{number: 3, name: "CCITT fax 3", unread: true, gdal: true},
	{number: 4, name: "CCITT fax 4", unread: true, gdal: true},
	{number: 5, name: "LZW", codec: chunk.LZW},
	{number: 6, name: "old JPEG", unread: true, gdal: true},
	{number: 7, name: "JPEG", codec: chunk.JPEG, plain: true},
	{number: compDeflate, name: "deflate", codec: chunk.Deflate},
	{number: 32773, name: "PackBits", codec: chunk.PackBits, plain: true},
	{number: 32946, name: "old deflate", codec: chunk.Deflate},
	{number: 34661, name: "JBIG", unread: true, gdal: true},
	{number: 34712, name: "JPEG 2000", unread: true},
	{number: 34887, name: "LERC", codec: chunk.LERC, plain: true},
	{number: 34925, name: "LZMA", codec: chunk.LZMA},
	{number: compZstd, name: "zstd", codec: chunk.Zstd},
	{number: 50001, name: "WebP", codec: chunk.WebP, plain: true},
	{number: 50002, name: "JPEG XL", unread: true, gdal: true},
	{number: 52546, name: "JPEG XL", unread: true, gdal: true},
	{number: 60000, name: "OpenZL", unread: true},
}

// compressionOf returns a value of the tag Compression. An unknown value has the name "".
func compressionOf(number uint16) compression {
	for _, known := range compressions {
		if known.number == number {
			return known
		}
	}
	return compression{number: number, unread: true}
}

// CompressionName returns the name of a Compression value, or its number.
func CompressionName(c uint16) string { return cmp.Or(compressionOf(c).name, strconv.Itoa(int(c))) }
