// Package pixels writes a window of an asset into a row of a batch. A Reader, one for each worker,
// reads and decodes the chunks that meet the window, and puts them into a Sink. The usual sink is a Row,
// which casts and normalises the samples and writes them to their place in the tensor, as its Raster
// says: a field, compiled once for all samples. The package knows neither datasets nor the order of
// samples.
package pixels
