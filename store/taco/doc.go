// Package taco opens containers of samples, the files in which datasets for machine learning on satellite images are
// distributed. A container holds levels of rows. A row is either a file with a byte range, or a folder of rows of the
// next level. A sample is found by the path of its ids, or by conditions on its columns.
//
// Supported are TACO 2 (the TACO specification 2.0.0, and the files of the writers of both its
// generations): ZIP, FOLDER, __TACOCAT__ and .tacocat, TACOLLECTION.json; TACO 3 and cozip: ZIP, folder and .tacocat;
// Tortilla 0.5.0 and TACO 0.2.0, streaming ones too, whole or in parts; and lists of
// these. Remote containers are read through the source.Opener that is passed.
//
//	ds, err := taco.Open(ctx, &openers.Files{}, []string{"data.tacozip"}, taco.Options{})
//	rows, err := ds.Filter(ctx, spacetime.Filter{Box: &box})
//	e, err := ds.Resolve(ctx, "roi_1/image")   // e.URI, e.Offset, e.Size
//
// Rows of a level are counted from 0 in the order in which they are stored, file after file. The chunks of a raster in
// a streaming TACO have paths too, "img1/lrf::2". Placeholders ("padding", __TACOPAD__N) count as rows, but are not
// visible: no path leads to them. The histograms of a streaming TACO (the folder "histogram" of level 0) count as rows,
// but not as samples: lists, filters, queries and statistics leave them out, while their paths lead to them.
package taco
