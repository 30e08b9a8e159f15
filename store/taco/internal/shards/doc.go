// Package shards reads datasets of shards that other loaders train on, as containers of two levels: MDS, the format of
// MosaicML Streaming (version 2), and tar files of WebDataset.
//
// Level 0 has the samples. Their numbers, strings and JSON values are its columns; arrays, images and other bytes are
// files below them, each a byte range of its shard, with the name of the MDS column or the extension in the tar.
//
// Not supported: MDS shards that are compressed as a whole, because their samples have no byte ranges; compressed tars.
package shards
