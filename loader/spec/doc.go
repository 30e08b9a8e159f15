// Package spec describes a run: the dataset, its rows and fields, windows, batches and order. A
// Spec has a JSON form, which ParseSpec reads, and decides every byte of the batches. WithDefaults
// fills in omitted members, Validate checks the result, and Schema returns the JSON Schema for
// other programs.
package spec
