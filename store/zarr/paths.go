package zarr

import (
	"strings"

	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

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

// Named reports whether a part of a path ends in .zarr or .zarr.zip. Only such paths are probed for metadata, because
// probing costs requests.
func Named(p source.Path) bool {
	name, _, _ := source.Split(p.Name)
	for part := range strings.SplitSeq(name, "/") {
		if magic.Named(part).Class == magic.Zarr {
			return true
		}
	}
	return false
}
