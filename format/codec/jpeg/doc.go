// Package jpeg decodes the JPEG streams of TIFF tiles (ITU-T T.81; TIFF Technical Note 2): baseline,
// extended sequential and progressive streams of 8 bits a sample with Huffman codes, with any sampling factors.
//
// Samples equal what libjpeg-turbo gives with its defaults, which libtiff is usually built with: its accurate
// integer inverse transform, smooth ("fancy") upsampling, and its integer conversion from YCbCr to RGB.
//
// Streams are not trusted. The shape that a stream states must be the tile's before memory is allocated, and
// scans are limited as in libtiff. libjpeg fills missing pixels with grey; here a stream that ends early or
// holds an invalid code is Corrupt. Unsupported are arithmetic codes, lossless and hierarchical streams,
// other widths of samples, and subsampled components of images in other colours than YCbCr.
package jpeg
