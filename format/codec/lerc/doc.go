// Package lerc decodes the tiles of TIFFs that are compressed by LERC (Limited Error Raster Compression of Esri):
// blobs of LERC2, versions 2 to 6, of one image of one or more interleaved bands.
//
// Blobs are not trusted: the shape and type that a blob states must be the tile's before memory is allocated.
// Blobs of LERC1, several blobs in one tile, lossless floats of version 6 and its nodata values are Unsupported.
package lerc
