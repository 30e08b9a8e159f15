// Package columns makes metadata columns of the samples of a container: rows of a table, by id, and what is computed
// of rasters.
package columns
