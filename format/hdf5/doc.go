// Package hdf5 reads the structure of HDF5 files, and so of NetCDF-4 files: the tree of groups and datasets, their
// attributes, and the index of the chunks of a dataset. It decodes no chunks.
//
// A file begins with a superblock, which has the address of the root group. Groups and datasets are objects: an object
// header is a list of messages. A group lists its links in messages, in a fractal heap that a version 2 B-tree indexes
// (dense links), or in symbol tables that a version 1 B-tree indexes (old groups). A dataset says its dataspace,
// datatype, filters and layout. The chunks of a chunked layout are found by one of six indexes: a version 1 B-tree, or,
// from HDF5 1.10 on, a single address, an implicit place, a fixed array, an extensible array or a version 2 B-tree.
//
// Specification: HDF5 File Format Specification, version 3.0, with version 5 of the data layout message of HDF5 2.0.
//
// Files are hostile: each block is bounded by the bytes that the file has, and all blocks of one reading together by a
// multiple of them. A file with a circle or with many ways to one block ends there.
//
// Not supported: virtual and external storage, links to other files, files in several parts (family, multi), and
// messages in the heap of shared messages.
package hdf5
