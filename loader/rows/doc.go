// Package rows is what a dataset is and which of its rows count. A Table is an open dataset: a catalog, a
// table or a directory (package catalog), a container (Container), or an array (Array). Conditions, splits,
// strata and sequences of a spec select its rows. It reads no pixel.
package rows
