// Package spec is what a user asks of a run: the dataset, its rows and fields, windows, batches and
// order. A Spec is JSON and decides every byte of the batches; Validate checks it, WithDefaults fills
// in what is left out, and Schema describes it for other programs.
package spec
