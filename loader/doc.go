// Package loader turns a dataset and a spec into batches: it owns the batch buffers, the workers
// and the back-pressure.
//
// The way of a chip: sample -> asset -> window -> the chunks it touches -> byte runs -> decode ->
// scattered into its place in the batch buffer, cast and normalised on the way.
package loader
