// Package columns makes metadata columns of the samples of a container: from rows of a table, by id, and computed
// from rasters.
package columns
