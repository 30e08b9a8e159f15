// Package tiledb reads and writes TileDB arrays of format version 3, that of TileDB 1.6: dense and
// sparse, fixed and var-length attributes, several fragments, every filter, encrypted or not.
//
// An array is a folder: a schema, and fragments, one folder for each write. Every attribute of a fragment is a
// file of tiles; a tile is cut into chunks, each filtered on its own (package filter). A read of a box of
// cells decodes the chunks that hold them and no others; the cells of a later fragment win.
//
// Specification: the TileDB format description, version 3, and what files by libtiledb 1.6.3 show
// beyond it: the footer's byte that says whether a fragment is dense, N+1 and N entries in the
// footer's lists, the range of time in a fragment's name.
//
// A dense array may have sparse fragments. As of all others the later one wins, but one that lies under a later dense
// fragment may show through it, as TileDB's own library (1.6 as 2.30) lets it: see layers.
//
// Writing makes arrays in local folders: a schema, fragments that appear when they are complete, and one fragment
// of many (Consolidate). TileDB 2 reads them.
//
// Not supported: other format versions, writing bzip2.
package tiledb
