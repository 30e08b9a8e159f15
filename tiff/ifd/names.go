package ifd

// Tags of images (TIFF 6.0; GeoTIFF 1.1, OGC 19-008r4; GDAL's own 42112 and 42113).
const (
	TagNewSubfileType      = 254
	TagImageWidth          = 256
	TagImageLength         = 257
	TagBitsPerSample       = 258
	TagCompression         = 259
	TagPhotometric         = 262
	TagFillOrder           = 266
	TagImageDescription    = 270
	TagStripOffsets        = 273
	TagSamplesPerPixel     = 277
	TagRowsPerStrip        = 278
	TagStripByteCounts     = 279
	TagPlanarConfig        = 284
	TagPredictor           = 317
	TagColorMap            = 320
	TagTileWidth           = 322
	TagTileLength          = 323
	TagTileOffsets         = 324
	TagTileByteCounts      = 325
	TagSubIFDs             = 330
	TagExtraSamples        = 338
	TagSampleFormat        = 339
	TagJPEGTables          = 347
	TagYCbCrCoefficients   = 529
	TagYCbCrSubSampling    = 530
	TagReferenceBlackWhite = 532
	TagPixelScale          = 33550
	TagTiepoint            = 33922
	TagTransformation      = 34264
	TagICCProfile          = 34675
	TagGeoKeys             = 34735
	TagGeoDoubles          = 34736
	TagGeoASCII            = 34737
	TagGDALMetadata        = 42112
	TagGDALNoData          = 42113
	TagLercParameters      = 50674
	TagRPC                 = 50844 // rational polynomial coefficients
)

// Keys of GeoTIFF that say which CRS a raster has and what its place refers to, and their values (GeoTIFF 1.1, annex
// B).
const (
	KeyModelType     = 1024
	KeyRasterType    = 1025
	KeyGeographicCRS = 2048
	KeyProjectedCRS  = 3072

	ModelProjected     = 1
	ModelGeographic    = 2
	RasterPixelIsArea  = 1
	RasterPixelIsPoint = 2 // the transform refers to the centres of pixels
	UserDefined        = 32767
)
