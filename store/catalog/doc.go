// Package catalog finds the samples of a dataset, and the files and values of each sample.
//
// A dataset is one of
//
//   - a catalog: a Parquet file with one row an asset, written by package build. Its blob columns hold the
//     chunk index of each asset, so that its file need not be opened for it. It may have more columns, joined
//     from a table. An asset may be a member of a container: then its URI is CONTAINER::PATH, and two columns
//     have its byte range in the container;
//   - a table of samples: any Parquet (flat columns, see format/tables/parquet) or CSV file with a header line
//     (RFC 4180; ".tsv" is tab-separated), whose columns hold paths of rasters, index blobs of
//     rasters, numbers and strings. Columns of bytes that begin like a raster hold the rasters themselves, and so
//     do structs of bytes and path, Hugging Face's feature Image. The Parquet files of a directory without
//     rasters, or those that a glob matches, are one table;
//   - STAC items: JSON (.json, .geojson) with an ItemCollection, a list of items or one item, or JSON lines
//     (.jsonl, .ndjson). They have the columns of STAC-GeoParquet: the properties by their names, and
//     "assets.NAME.href", for which "NAME" also stands;
//   - a directory, walked for .tif, .tiff and .rumi files; a glob; or one file. PNG and JPEG files (.png, .jpg,
//     .jpeg) count only where the glob or the pattern of a field ends like one, because directories of scenes have
//     previews in them, and in a directory that has nothing else. A table metadata.csv, .jsonl or .parquet in
//     such a directory has its samples, with their files in the column file_name; tables in folders of it are
//     splits, whose names are in the column split. Zarr stores (directories .zarr, ZIPs .zarr.zip) count in the same
//     way; each image along their axis n is a sample.
//
// The samples of a table keep the order of its rows. The samples of a directory or glob are ordered by the bytes of
// their paths below it, written with "/". Hidden files and directories (".name") are skipped. Symbolic links are
// followed, and a sample is a path: a file that two paths lead to is two samples, so patterns can pair
// linked directories. A split by id does not see that they are one file. A link to a directory that contains
// it, or out of Options.Roots, is an error.
//
// A TIFF's internal mask is part of its index. Files beside a raster count as they do for GDAL: the mask NAME.tif.msk,
// NAME.tif.aux.xml and a world file. BesideVariable turns them off. Catalogs that were written before indexes had masks
// have none: write them again.
//
// # Fields
//
// A field is a raster or a metadata column. A field with a column is a raster if it also has a blob column, or if
// the strings of the column end in .tif, .tiff, .rumi, .zarr or .zarr.zip (in upper or lower case, a URL before its
// query, a Zarr store before ::ARRAY; null and empty ones are ignored) or are byte ranges (/vsisubfile/); otherwise
// it is a metadata column. A field without a column is the catalog's assets or, in another table, the column with
// the field's name. Integers and booleans are Int, floats Float, strings Text. A CSV column is Int if every value is
// an integer, or every value is "True" or "False" (also in upper or lower case), else Float if every value is a
// number, else Text; empty cells are null. A column of integers is an error where it is used if one of them has over
// 64 bits. Comments, lines of "#" or "# " and text, may stand before the header. Lists of these, of Parquet files
// and JSON, are List with the kind of their elements.
//
// A directory, glob or catalog also has the columns "folder", the name of the folder that each file lies in, "name",
// the name of the file without its ending, and "path", its path below the dataset.
//
// Fields with patterns pair files: "images/{id}.tif" and "masks/{id}.tif" make one sample of the two files whose
// paths below the dataset have the same {id}, which matches one or more of any characters. A pattern may have several
// names and stars; names then match text without slashes, and each is a column. A sample is a file of the first field
// whose pattern has all names; another field has the file whose names agree, the same one for all values of a name
// that its pattern lacks. In a catalog the path is the URI as it is written; of an absolute URI it is the part after
// the directory that all of them share. Samples are ordered by the paths of the leading field. A sample for which a
// field lacks a file is an error: no sample disappears in silence.
//
// # Identity
//
// The fingerprint hashes the names and sizes of the samples: for every raster field the URIs, without the
// directory that all of them share, and the files' sizes in bytes; for every metadata column its values. It
// includes neither the place of the dataset nor any time, so it stays the same when data moves, and a directory
// and the catalog made from it agree. Sizes come from the directory or the catalog's size column, or else are the
// lengths of the blobs; a table of paths alone has none. Of rasters in cells it has the bytes that each row group
// stores. The footer of a catalog has the digests that the fingerprint is made of, so opening it reads no column;
// CheckSums compares them with the columns. They count only in a file as its writer left it, and a catalog without
// them has the same fingerprint.
//
// # Memory
//
// A Parquet file's rows stay in the file: its pages are decoded on demand into one bounded cache. Listings of
// directories, the pairs that patterns make, and the requested columns of CSV files are held in memory.
package catalog
