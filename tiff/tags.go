package tiff

import "strconv"

// Tags read or written here (TIFF 6.0; GeoTIFF 1.1, OGC 19-008r4; GDAL's own 42112 and 42113).
const (
	tagNewSubfileType        = 254
	tagImageWidth            = 256
	tagImageLength           = 257
	tagBitsPerSample         = 258
	tagCompression           = 259
	tagPhotometric           = 262
	tagFillOrder             = 266
	tagStripOffsets          = 273
	tagSamplesPerPixel       = 277
	tagRowsPerStrip          = 278
	tagStripByteCounts       = 279
	tagPlanarConfig          = 284
	tagT4Options             = 292
	tagPredictor             = 317
	tagColorMap              = 320
	tagTileWidth             = 322
	tagTileLength            = 323
	tagTileOffsets           = 324
	tagTileByteCounts        = 325
	tagExtraSamples          = 338
	tagSampleFormat          = 339
	tagJPEGTables            = 347
	tagJPEGProc              = 512
	tagJPEGInterchange       = 513
	tagJPEGInterchangeLength = 514
	tagJPEGRestart           = 515
	tagJPEGQTables           = 519
	tagJPEGDCTables          = 520
	tagJPEGACTables          = 521
	tagYCbCrCoefficients     = 529
	tagYCbCrSubSampling      = 530
	tagReferenceBlackWhite   = 532
	tagPixelScale            = 33550
	tagTiepoint              = 33922
	tagTransformation        = 34264
	tagGeoKeys               = 34735
	tagGeoDoubles            = 34736
	tagGeoASCII              = 34737
	tagGDALMetadata          = 42112
	tagGDALNoData            = 42113
	tagLercParameters        = 50674
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
	compHuffman    = 2
	compFax3       = 3
	compFax4       = 4
	compLZW        = 5
	compOldJPEG    = 6
	compJPEG       = 7
	compDeflate    = 8
	compPackBits   = 32773
	compOldDeflate = 32946
	compLERC       = 34887
	compLZMA       = 34925
	compZstd       = 50000
	compWebP       = 50001
)

// compressionNames are for messages and Meta.
var compressionNames = map[uint16]string{
	compNone: "none", compHuffman: "CCITT RLE", compFax3: "CCITT fax 3", compFax4: "CCITT fax 4", compLZW: "LZW",
	compOldJPEG: "old JPEG", compJPEG: "JPEG",
	compDeflate: "deflate", compPackBits: "PackBits", compOldDeflate: "old deflate", 34661: "JBIG", 34712: "JPEG 2000",
	compLERC: "LERC", compLZMA: "LZMA", compZstd: "zstd", compWebP: "WebP",
	50002: "JPEG XL", 52546: "JPEG XL", 60000: "OpenZL",
}

// CompressionName returns the name of a Compression value, or its number.
func CompressionName(c uint16) string {
	if s := compressionNames[c]; s != "" {
		return s
	}
	return strconv.Itoa(int(c))
}
