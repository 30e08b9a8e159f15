// Package bench measures the decoding of whole files, the loading of batches in this process, and the streaming of
// batches into Python. A report has the settings, the machine and every round, so that others can repeat a number
// and check it.
//
// A measurement has a warm-up and then a number of rounds of at least a given time. Files are read through the cache
// of the operating system, so that they come from memory after the warm-up if they fit. MB means 10^6 bytes of
// decoded pixels.
package bench
