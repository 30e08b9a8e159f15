// Package tables holds tables: named columns of equal length. It reads them from Parquet objects at
// a byte range of a file, and decodes a column when it is first used.
//
// It reads all columns that pyarrow writes: booleans, integers of 8 to 64 bits, floats of 16, 32 and
// 64 bits, strings, binary, dates, times, timestamps, decimals of up to 38 digits, columns without any
// value, and lists, maps and structs of these (Parquet format 2.12, nesting by Dremel's levels). Arrow's large
// strings, large lists and dictionaries are stored no differently in Parquet: Type.Form says which one the file had, by
// its Arrow schema, so package format/tables/encode writes the same type. It does not read encrypted files.
//
// Timestamps are microseconds in UTC. Nanoseconds are rounded down, and Vector.Nanos has the rest. Timestamps without a
// zone are taken as UTC, as the specifications of the containers say.
//
// Files are not trusted, see package format/tables/parquet. The memory of a column grows with its decoded pages, not
// with claims of the file, up to Options.MaxBytes.
package tables
