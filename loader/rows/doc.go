// Package rows opens datasets and selects their rows. A Table is an open dataset: a catalog, a
// table or a directory (package catalog), a container (Container), or the images of an array. The
// conditions, splits, strata and sequences of a spec select its rows. The package decodes no
// pixels.
package rows
