// Package bench measures: decoding whole files, loading batches in this process, and streaming them
// into Python. Every report says with what settings, on which machine, and gives every round, so that
// a number can be repeated and doubted.
//
// A measurement is a number of rounds of at least a given time each, after a warm-up. Files are read
// through the operating system's cache: after the warm-up from memory, if they fit. MB are 10^6 bytes
// of decoded samples.
package bench
