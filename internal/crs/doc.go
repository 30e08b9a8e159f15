// Package crs converts points between longitude and latitude and the coordinates of map
// projections, and decides whether a box in one coordinate reference system (CRS) intersects a
// raster in another.
//
// A CRS is known by its EPSG code. Package epsg lists the known ones.
//
// Coordinates are x (east) and y (north), as GDAL has them in rasters, in either order of axes in the
// EPSG dataset. Longitude and latitude are in degrees on WGS 84. Datums that lie further from it than
// a few metres (NAD27, OSGB 1936, DHDN, …) are shifted by the three or seven parameters that PROJ
// takes without grids: their points are some metres off, in large countries up to some tens. Datums
// without a known shift are taken for WGS 84. That serves boxes and maps. A Transform, by which
// pixels are placed, refuses such shifts: it takes two CRSs on the same datum, or on datums that are
// WGS 84 to within a few metres.
//
// The formulas come from EPSG guidance note 7-2 (IOGP report 373-7-2) and Snyder, Map
// Projections: A Working Manual (USGS Professional Paper 1395), with the series of Karney
// (Transverse Mercator with an accuracy of a few nanometers, 2011; On auxiliary latitudes, 2023).
// Without a change of datum they agree with PROJ to less than 1 mm.
//
// The results of this package may differ in the last bits from one platform or version to the next.
// Only package internal/crs/lonlat promises its results to the bit, because splits by place depend on them.
package crs
