// Package hdf5s makes datasets of HDF5 and NetCDF-4 files, as zarrs does of Zarr.
package hdf5s

import (
	"github.com/chaski-eo/chaski/loader/stores/zarrs"
	"github.com/chaski-eo/chaski/store/hdf5"
)

func init() {
	zarrs.Register(&zarrs.Format{Kind: hdf5.Kind, Name: "hdf5", Noun: "HDF5", Open: hdf5.Open})
}
