// Package tiledb reads TileDB arrays of format versions 3 to 23: dense and
// sparse, with attributes of fixed and variable length, several fragments, encrypted or not.
//
// An array is a directory. It holds a schema, and one directory for each write, called a fragment. A fragment has one
// file of tiles for each attribute. A tile is cut into chunks, each filtered on its own (package filter). Reading a box
// of cells decodes only the chunks that hold cells of the box. If several fragments hold a cell, the latest one wins.
//
// Specification: the TileDB format description, version 3; for later versions the folder format_spec of TileDB; and
// facts that only files of its library show. format.go lists what each version has. From version 5 on, each dimension
// has files of its own, and a file says that a fragment is complete; from version 10 on, a fragment names its schema.
// What files of libtiledb 1.6.3 show: the byte of the footer that says whether a fragment is dense, N+1 and N entries
// in the lists of the footer, and the range of time in the name of a fragment.
//
// A dense array may have sparse fragments. Cells of a sparse fragment may show through a later
// dense fragment, as they do in TileDB's own library (1.6 and 2.30); shadow.go has the rule.
//
// Not supported: writing; WebP; deletes and updates.
package tiledb
