package shuffle

// Rows are the numbers of some rows of a table, or nil for all of them.
type Rows []uint32

// Len returns how many rows they are of a table of n rows.
func (r Rows) Len(n int64) int64 {
	if r == nil {
		return n
	}
	return int64(len(r))
}

// At returns number i of the rows.
func (r Rows) At(i int64) int64 {
	if r == nil {
		return i
	}
	return int64(r[i])
}
