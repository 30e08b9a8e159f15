// Package hdf5 opens HDF5 and NetCDF-4 files as groups of arrays, as store/arrays has them: what a chunk index leads to
// are chunks of a regular grid.
//
// Dimensions are named by dimension scales, as netCDF-4 and h5py write them, or by labels of dimensions.
package hdf5

import (
	"context"
	"slices"
	"strings"

	format "github.com/chaski-eo/chaski/format/hdf5"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/arrays"
)

// Kind is the kind of the paths of HDF5 files.
var Kind = store.Register(&arrays.Kind{Noun: "an HDF5 file", Files: magic.Named(".h5"), Looks: Is, OpenNode: Open})

// Is reports whether a path is an HDF5 file, or one and a path in it. A remote one costs a request.
func Is(ctx context.Context, o source.Opener, p source.Path) (bool, error) {
	if name, _, _ := source.Split(p.Name); p.Remote() && magic.Named(name) != magic.Named(".h5") {
		return false, nil
	}
	if !p.Remote() {
		name, _, _ := source.Split(p.Local())
		if st, err := openers.RootsOf(o).Stat(name); err != nil || !st.Mode().IsRegular() {
			return false, nil
		}
	}
	uri, _, _ := source.Split(p.Name)
	r, err := o.Open(ctx, uri)
	if err != nil {
		return false, source.Outage(err)
	}
	is, err := format.Is(ctx, r)
	return r.Close() == nil && is, err
}

// hidden reports whether an attribute is one of the format, not of the user.
func hidden(name string) bool {
	reserved := []string{"DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "DIMENSION_LABELS", "_NCProperties"}
	return strings.HasPrefix(name, "_Netcdf4") || slices.Contains(reserved, name)
}
