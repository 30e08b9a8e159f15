// Package resources has the resources and options of an engine: workers, fetchers, memory, files, keys and
// logs, and the measurement of the workers' time. They do not change a byte of any batch; the options in
// package spec do.
package resources
