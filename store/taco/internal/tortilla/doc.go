// Package tortilla reads Tortilla containers, version 0.5.0 of their specification, and TACO containers
// of version 0.2.0, streaming ones too.
//
// Both begin with a header of 200 bytes with the place of the footer: a Parquet table with a row
// for each sample. The bytes of a sample in a Tortilla may be a Tortilla again, whose offsets are
// counted from its own start. A streaming TACO has the rows of all levels, and of the chunks
// of its rasters, in a chain of tables in the footer, each with the place of the next. Its offsets
// are counted from the start of the file.
//
// Where real files differ from the specifications, real files are read: offsets and lengths of any
// integer type, columns without values of type null, tables with an index column, and TACO headers
// with the magic number of Tortilla.
package tortilla
