// Package formats makes a program read all formats: it imports the packages that register their codecs and stores, as a
// program imports image/png beside package image. A program that knows its files imports those packages that it needs
// instead.
package formats

import (
	_ "github.com/chaski-eo/chaski/format/codec/geozl" // OpenZL too: rumi files
	_ "github.com/chaski-eo/chaski/format/codec/jpeg"
	_ "github.com/chaski-eo/chaski/format/codec/lerc"
	_ "github.com/chaski-eo/chaski/format/codec/webp"
	_ "github.com/chaski-eo/chaski/format/codec/xz"
	_ "github.com/chaski-eo/chaski/format/picture"
	_ "github.com/chaski-eo/chaski/format/tables/geometries"
	_ "github.com/chaski-eo/chaski/format/tables/query" // SQL in conditions
	_ "github.com/chaski-eo/chaski/format/tables/text"  // CSV and JSON
	_ "github.com/chaski-eo/chaski/loader/containers"
	_ "github.com/chaski-eo/chaski/loader/ground" // windows on the ground
	_ "github.com/chaski-eo/chaski/loader/vectors"
	_ "github.com/chaski-eo/chaski/rumi"
	_ "github.com/chaski-eo/chaski/source/archive"        // members of ZIPs
	_ "github.com/chaski-eo/chaski/store/catalog/virtual" // VRT
	_ "github.com/chaski-eo/chaski/store/hdf5"
	_ "github.com/chaski-eo/chaski/store/matlab"
	_ "github.com/chaski-eo/chaski/store/numpy"
	_ "github.com/chaski-eo/chaski/store/tensors"
	_ "github.com/chaski-eo/chaski/store/tiledb"
	_ "github.com/chaski-eo/chaski/store/zarr"
	_ "github.com/chaski-eo/chaski/tiff"
)
