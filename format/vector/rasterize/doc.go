// Package rasterize draws polygons, lines and points into a window of pixels, with the rules of GDAL:
// the result equals rasterio.features.rasterize, pixel for pixel.
//
// A polygon covers the pixels whose centres lie in it, by the even-odd rule over all of its rings, and
// a multipolygon what any of its polygons covers. A line covers one pixel a column or a row, by
// Bresenham's algorithm between the pixels of its points. With AllTouched, both cover every pixel that
// their lines pass through.
package rasterize
