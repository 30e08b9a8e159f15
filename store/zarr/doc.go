// Package zarr reads Zarr arrays and groups, of versions 2 and 3, as images.
//
// An array is a directory. It holds metadata in JSON (.zarray and .zattrs of version 2, zarr.json of version 3)
// and one object for each chunk of a regular grid. A chunk that does not exist has the fill value everywhere. With
// the codec sharding_indexed of version 3 an object, called a shard, holds many chunks and an index of them: a
// window then reads the index, which is kept, and the byte ranges of its own chunks.
//
// A group is a directory of arrays and groups. Its metadata may hold the metadata of all nodes below it
// (consolidated metadata). A ZIP of such a directory is read like it. Names of nodes come from files: they are
// checked before they become part of a path.
//
// Specification: the Zarr core specifications of versions 3 and 2 (zarr-specs), with the codecs of zarr-python 3.
// Beyond these, attributes of version 2 may have NaN and Infinity as bare words, which JSON does not have.
//
// Not supported: writing; structured types, strings and objects; irregular grids; two compressors around each other,
// and codecs around sharding_indexed.
package zarr
