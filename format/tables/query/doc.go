// Package query runs SQL over tables of package table, a column at a time, in pure Go. docs/sql.md lists the SQL that
// it runs, and where it differs from DuckDB.
//
// The packages below internal/ are the steps of a query. Each imports only the ones before it:
//
//	sql     types, errors, dates
//	ast     tokens and the tree that the parser makes of them
//	vec     values of a batch of rows
//	eval    bound expressions, where equal ones are one node, and their values for a batch of rows at a time
//	bind    finds columns, types and functions
//	funcs   the functions and aggregates, with their documentation
//
// This package runs a SELECT with them.
//
// A query means what it means in DuckDB: NULLs sort last in both directions, NaN is above every number and equal to
// itself, strings are compared by bytes and names without regard to case. Integers are computed in 64 bits and do not
// overflow silently, their sums are exact, "/" divides floats and "//" integers, and lists count from 1.
//
// The rest of DuckDB's SQL is fault.Unsupported. Names that do not exist are fault.NotFound. A query that does not
// parse is a *SyntaxError, one with wrong types a *BindError; both lack a kind.
//
// Queries are not trusted: their length, depth and number, the rows of their joins and the strings that they make are
// bounded.
package query
