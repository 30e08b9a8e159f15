// Package ccitt decodes the bilevel codes of TIFF: modified Huffman (Compression 2, TIFF 6.0 section 10), Group 3
// in one and two dimensions (3; ITU-T T.4), and Group 4 (4; ITU-T T.6).
//
// golang.org/x/image/ccitt is not used: it has neither Group 3 in two dimensions nor modified Huffman, and allocates
// a reader for each strip.
//
// Rows come out as they lie in an uncompressed TIFF: one bit a pixel, the most significant bit first, white 0 and
// black 1, whatever PhotometricInterpretation says. libtiff does the same.
//
// Streams are not trusted. Memory grows with the changes of colour that a stream holds. libtiff makes up the rest
// of a row with an invalid code, or of another length than the image has; here such a stream is Corrupt. The
// uncompressed mode of T.4 and T.6 is Unsupported, as in libtiff.
package ccitt
