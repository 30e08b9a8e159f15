// Package query runs SQL over tables of package table, a column at a time, in pure Go. docs/sql.md says what of SQL, and
// where it means something else than in DuckDB.
//
// A text becomes tokens (lex.go), these a tree (parse.go, parse_expr.go), in which the binder (bind.go, types.go) finds
// columns and types: it makes nodes, of which those that are equal are one. The evaluator (eval.go, kernels.go, cast.go,
// choose.go) computes a node for a batch of rows at a time. Functions and aggregates are tables of their own (function.go,
// fn_*.go, aggregate.go), which carry their documentation. A query inside of a query is run first, to a table (subquery.go).
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
