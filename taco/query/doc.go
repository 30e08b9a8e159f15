// Package query runs SQL over tables of package table, a column at a time, in pure Go.
//
// What is run means what it means in DuckDB: NULLs stand last in both directions, NaN is above every
// number and equal to itself, texts are compared by bytes, names without regard to case, integers are
// computed in 64 bits and do not overflow silently, their sums are exact, "/" is division of floats and "//" of integers, lists
// count from 1. Read is
//
//	SELECT [DISTINCT] items FROM table [AS alias] [[INNER | LEFT] JOIN table ON cond | , table | CROSS JOIN table]…
//	[WHERE cond] [GROUP BY items | ALL] [HAVING cond] [ORDER BY items] [LIMIT n] [OFFSET n]
//
// with +, -, *, /, //, %, ||, comparisons, AND, OR, NOT, IN, BETWEEN, [I]LIKE … ESCAPE, IS [NOT] NULL,
// TRUE, FALSE, UNKNOWN and DISTINCT FROM, x[i], literals of numbers, texts, dates and timestamps, the
// aggregates COUNT, SUM, AVG, MIN and MAX (with DISTINCT), and the functions of scalars.
//
// One thing is as the original readers have it, whose scans compare so: WHERE x > 1, for a column x of
// floats and alone or joined by AND, does not hold for NaN.
//
// The rest of DuckDB's SQL (WITH, subqueries, windows, CASE, casts, decimals in arithmetic, …) is
// fault.Unsupported. Names that do not exist are fault.NotFound. A text that is no SQL, or that
// compares what cannot be compared, gives an error without a kind.
//
// Queries are not trusted: their length, depth and the rows of a join are bounded.
package query
