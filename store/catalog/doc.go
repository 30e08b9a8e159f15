// Package catalog says which samples a dataset has, and where each one's files and values are.
//
// A dataset is opened from one of
//
//   - a catalog: a Parquet file with one row an asset, written by WriteParquet, whose blob columns
//     hold what is needed to read each asset without opening its file first, and which may have
//     further columns, joined in from a table; an asset may be a member of a container, a byte range of a
//     file that its URI, CONTAINER::PATH, and two columns tell;
//   - a table of samples: any Parquet (flat columns, see tables/parquet) or CSV file with a header line
//     (RFC 4180; ".tsv" is tab-separated), whose columns hold paths of rasters, index blobs of
//     rasters, numbers and texts;
//   - a directory, walked for .tif, .tiff and .rumi files; a glob; or one file.
//
// Samples of a table stand in the order of its rows, those of a directory or glob in the order of
// the bytes of their paths below it, written with "/". Hidden files and folders (".name") are
// passed over. Symbolic links are followed, and a sample is a path: a file that two paths lead to is two
// samples, so that patterns can pair linked folders. A split by id does not know that they are one
// file. A link that leads back to a folder that it lies in, or with Options.Roots out of them, is an error.
//
// A TIFF's internal mask is part of its index; a mask in a file of its own (".msk") is not looked for. Indexes
// in catalogs that were written before that have none: write them again.
//
// # Fields
//
// A field is a raster or a value that rides along. With a column it is a raster if it has a blob
// column too, or if the first text in the column ends in .tif, .tiff or .rumi (in any case of
// letters; rows that are null or empty are passed over); otherwise it rides along. Without a column
// it is the dataset's assets, or, in a table that is no catalog, the column with the field's name.
// Integers and booleans are Int, floats Float, everything else that is text is Text. A CSV column is
// Int if every value in it is an integer of 64 bits, else Float if every value is a number, else
// Text; empty cells are null.
//
// Fields with patterns pair files: "images/{id}.tif" and "masks/{id}.tif" make one sample of the
// two files whose paths below the dataset agree on {id}, which stands for one or more of any
// characters. In a catalog that is the URI as it is written, or of an absolute URI what follows the
// folder that all of them share. Samples are ordered by the path of the first field with a pattern. An id for which a
// field has no file is an error: nothing is left out silently.
//
// # Identity
//
// The fingerprint hashes what the samples are called and how large they are: for every field the
// URIs, less the folder that all of them share, and the files' sizes in bytes; the values of fields
// that ride along. Neither where the dataset lies nor any time is in it, so it stays the same when
// data moves, and a directory and the catalog made from it agree. Sizes come from the folder, from a
// catalog's size column, or else are the lengths of the blobs; a table of mere paths has none.
//
// # Memory
//
// A Parquet file's rows stay in the file: its pages are decoded on demand into one bounded cache.
// CSV files, listings of folders, and the pairs that patterns make are held in memory, a CSV file's
// only for the columns that are asked for.
package catalog
