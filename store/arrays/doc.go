// Package arrays has what stores of arrays of samples share: arrays in groups, their metadata, chunks on a regular grid
// and their codecs, images along an axis n, labels, the place on the ground and times as CF has them, and checks of
// every chunk. A format of such stores, as store/zarr and store/hdf5 are, opens a Node and says where chunks are.
package arrays
