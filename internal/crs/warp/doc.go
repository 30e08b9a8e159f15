// Package warp makes a window on the ground out of a raster in another CRS, resolution or
// orientation.
//
// NewMapping says where each pixel of the window lies in the raster. Mapping.Source and Mapping.Boxes
// name the pixels of the raster that are needed, before one is read. Pick and Sample then resample
// them, one band at a time: nearest, bilinear or antialias, with the validity of pixels.
//
// Places are computed exactly at the corners of cells, and bilinearly between. Cells are halved
// until the places in them are within 0.02 pixels of the exact ones at the points where a bilinear
// surface is worst. From the corners on all places are whole numbers of 2^-32 pixels, so every
// machine resamples alike.
package warp
