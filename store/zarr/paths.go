package zarr

import (
	"errors"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
)

// Names of metadata files.
const (
	meta3        = "zarr.json"
	array2       = ".zarray"
	group2       = ".zgroup"
	attrs2       = ".zattrs"
	consolidated = ".zmetadata"
)

// Limits of groups that are listed, since the groups of a hostile store may have no end.
const (
	maxNodes  = 10000
	maxLevels = 16
)

// Bounds of the path of a node: maxPath is the longest path on Linux in bytes, and maxParts admits all groups that
// are listed.
const (
	maxPath  = 4096
	maxParts = maxLevels + 1
)

// checkPath returns an error if the path of a node could lead out of its group, or has names that some stores cannot
// hold.
func checkPath(path string) error {
	if len(path) > maxPath || strings.Count(path, "/") >= maxParts {
		return corrupt("%.80q… is longer than the path of a node: %d bytes, %d names", path, maxPath, maxParts)
	}
	for part := range strings.SplitSeq(path, "/") {
		odd := strings.ContainsFunc(part, func(r rune) bool { return r < ' ' || r == '\\' })
		if odd || part == "" || part == "." || part == ".." {
			return corrupt("%.80q is not the path of a node", path)
		}
	}
	return nil
}

// missing reports whether an error means that an object does not exist.
func missing(err error) bool { return errors.Is(err, fault.NotFound) && !openers.Outside(err) }

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
