package zarr

// Names of metadata files.
const (
	meta3        = "zarr.json"
	array2       = ".zarray"
	group2       = ".zgroup"
	attrs2       = ".zattrs"
	consolidated = ".zmetadata"
)

// maxNodes bounds the nodes of a group that are listed, since the groups of a hostile store may have no end.
const maxNodes = 10000
