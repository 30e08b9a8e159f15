// Package webp decodes the tiles of WebP of TIFF files (Compression 50001) to interleaved bytes, red, green and blue,
// and alpha for four bands.
//
// golang.org/x/image decodes lossy streams, VP8, once the container is known to state the size of the tile. RGB is
// made of them here, as libwebp does it: an image.YCbCr of the standard library has the range of JPEG, and WebP has
// the range of video. Lossless streams, VP8L (RFC 9649), are decoded here, because that library takes 175 MB for a
// stream of a few bytes that names the last of 65,536 groups of codes.
package webp
