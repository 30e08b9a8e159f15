// Package tables reads the tables of a container: Parquet objects at a byte range of a file, columns
// decoded when they are first used.
//
// Read are all columns that pyarrow writes: booleans, integers of 8 to 64 bits, floats of 16, 32 and
// 64 bits, text, binary, dates, times, timestamps, decimals of up to 38 digits, columns without any
// value, and lists, maps and structs of these (Parquet format 2.12, nesting by Dremel's levels). Large
// strings, large lists and dictionaries of Arrow are the same in Parquet. Not read: encryption.
//
// Instants are counted in microseconds of UTC. Those of a finer clock are rounded down, and Vector.Nanos has the rest; those without
// a zone are taken as UTC, as the containers' texts say.
//
// Files are not trusted, see package tables/parquet. A column takes memory by what is in the pages that
// are read, up to Options.MaxBytes.
package tables
