package sql

import (
	"fmt"

	"github.com/chaski-eo/chaski/fault"
)

// BindError is the error of a query that parses but whose types do not fit. It lacks a kind, because the query is at
// fault and not a file.
type BindError struct{ msg string }

// Error returns the types that do not fit.
func (e *BindError) Error() string { return e.msg }

// Bind returns a BindError.
func Bind(format string, args ...any) error { return &BindError{fmt.Sprintf(format, args...)} }

// SyntaxError is the error of a query that does not parse. It lacks a kind, because the query is at fault and not a
// file.
type SyntaxError struct {
	Msg string
	Pos int // byte offset in the query
}

// Error returns the message in DuckDB's words.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("syntax error %s (byte %d of the query)", e.Msg, e.Pos)
}

// Unsupported is the error for SQL that DuckDB may run and this package does not.
func Unsupported(format string, args ...any) error {
	return fault.New(fault.Unsupported, "query",
		format+": this needs DuckDB, by which chaski.taco in Python runs it", args...)
}
