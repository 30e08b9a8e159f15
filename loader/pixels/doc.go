// Package pixels turns an asset and a window into pixels in a batch: it reads the chunks that the window
// touches, decodes them, and scatters them into their place, cast and normalised on the way. A Reader is one
// worker's; a Raster is a field compiled for all samples. It knows no datasets and no order.
package pixels
