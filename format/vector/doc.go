// Package vector reads polygons, lines and points from files, and finds those that lie in a box.
//
// It reads GeoParquet 1.0 and 1.1 with geometries in WKB, and GeoJSON (RFC 7946, and the CRS of its predecessor). The
// boxes of all shapes, and the values of one column, are in memory; the shapes themselves are read a page at a time on
// demand, but shapes of GeoJSON are in memory as WKB. Shapes lie on the ground or, with a column of paths, in the
// pixels of images.
//
// It also reads labels of detectors, whose shapes lie in the pixels of images: XML of Pascal VOC, text of DOTA and
// YOLO, JSON of COCO, LabelMe, Supervisely, Label Studio, VIA and xBD, and boxes in CSV or .npy. formats.go says how
// each of them is recognised and where it has its objects; where other files have theirs, Options.Box says. One tree
// reads the objects of XML, JSON and cells of Parquet, and all of them are put into labels, which counts their memory.
//
// Files are not trusted, see packages format/tables/parquet and format/tables/wkb. A file with more shapes than bytes
// is refused.
package vector
