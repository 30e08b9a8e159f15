// Package loader turns a dataset and a spec into batches. It owns the batch buffers and the workers,
// and bounds the memory that they use.
//
// A chip passes these stages: sample, asset, window, the chunks that the window touches, byte
// ranges, decoding. Then its pixels are cast, normalised and written to their place in the batch.
//
// A program reads the formats whose packages it imports; package loader/formats imports them all.
package loader
