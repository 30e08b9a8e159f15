package rows

// Steps are the steps of time of a field whose rasters are several files in each sample, as sequences of TACO 3 are.
// The column of the field itself has the first file of each sample.
type Steps struct {
	// Columns are the columns of the table that have the steps.
	Columns []int
	// Padding reports whether a sample has no file for a step, and some for others.
	Padding func(step int, row int64) bool
}
