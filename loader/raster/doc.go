// Package raster reads windows of rasters into arrays, without a spec: of files, of rasters inside
// containers, and of several of one shape stacked.
package raster
