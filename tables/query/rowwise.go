package query

import "regexp"

// otherRows matches the words by which a condition can look at rows other than its own: the words of subqueries in all
// of DuckDB's forms (SELECT, FROM first, TABLE, VALUES), of windows, and row numbers.
var otherRows = regexp.MustCompile(`(?i)\b(select|from|table|values|over|rowid)\b`)

// RowWise reports whether a condition on a row certainly depends on that row alone, so that leaving out other rows does
// not change its answer. It looks for words, also inside string literals, so it may report false for a condition that
// is row-wise.
func RowWise(condition string) bool { return !otherRows.MatchString(condition) }
