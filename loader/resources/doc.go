// Package resources is what an engine may use: workers, fetchers, memory, files, keys and logs, and where the
// workers' time goes. None of it changes a byte of any batch; that is package spec's.
package resources
