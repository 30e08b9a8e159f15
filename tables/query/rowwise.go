package query

import "regexp"

// otherRows finds the words that a condition needs to look at rows other than the one it is asked about: subqueries in all
// the forms that DuckDB has (SELECT, FROM first, TABLE, VALUES), windows, and numbers of rows.
var otherRows = regexp.MustCompile(`(?i)\b(select|from|table|values|over|rowid)\b`)

// RowWise reports whether the answer of a condition about a row surely depends on that row alone, so that leaving out other
// rows changes nothing. It judges by words, also those in texts, and so may say false of a condition that is row-wise.
func RowWise(condition string) bool { return !otherRows.MatchString(condition) }
