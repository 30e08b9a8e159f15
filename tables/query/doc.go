// Package query runs SQL over tables of package table, a column at a time, in pure Go. docs/sql.md says what of SQL, and
// where it means something else than in DuckDB.
//
// The packages below internal/ are the steps of a query, each of which imports only those before it:
//
//	sqlerr, sqltype, clock   errors, types, dates
//	ast                      tokens and the tree that the parser makes of them
//	vec                      values of a batch of rows
//	plan                     bound expressions; equal ones are one node
//	eval                     computes a bound expression for a batch of rows at a time
//	bind                     finds columns, types and functions
//	funcs, aggs              the functions and aggregates, with their documentation
//
// This package runs a SELECT with them. A query inside of an expression is run when the expression is bound, so that the
// evaluator sees only its result.
//
// What is run means what it means in DuckDB: NULLs stand last in both directions, NaN is above every
// number and equal to itself, texts are compared by bytes, names without regard to case, integers are
// computed in 64 bits and do not overflow silently, their sums are exact, "/" is division of floats and "//" of integers, lists
// count from 1.
//
// The rest of DuckDB's SQL is fault.Unsupported. Names that do not exist are fault.NotFound. A text that is no SQL is a
// *SyntaxError, one that compares what cannot be compared a *BindError; both have no kind.
//
// Queries are not trusted: their length, depth, number, the rows of their joins and the texts that they make are bounded.
package query
