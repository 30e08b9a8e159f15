package chunk

// Index.Params of the codec JPEG begin with the kind of the samples; the JPEGTables of a TIFF follow. Catalogs store
// the values: they must not change.
const (
	JPEGAsStored = 0
	JPEGYCbCr    = 1 // they become RGB, as in GDAL
)

// Index.Params of the codec LERC are two bytes: the compression around the blobs, as in TIFF's LercParameters, and 1 if
// blobs may lack the last band, which then marks the valid pixels. Catalogs store the values: they must not change.
const (
	LERCPlain   = 0
	LERCDeflate = 1
	LERCZstd    = 2
)

// LERCTypes are the types of samples that LERC has, in the order of its numbers for them.
var LERCTypes = [...]DType{Int8, Uint8, Int16, Uint16, Int32, Uint32, Float32, Float64}
