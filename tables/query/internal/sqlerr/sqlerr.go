// Package sqlerr has the errors of a query that are about its text, and not about the tables.
package sqlerr

import (
	"fmt"

	"github.com/chaski-eo/chaski/fault"
)

// BindError is a query that parses but means nothing: its types do not fit. It has no kind: it is the user's.
type BindError struct{ msg string }

// Error returns what does not fit.
func (e *BindError) Error() string { return e.msg }

func Bind(format string, args ...any) error { return &BindError{fmt.Sprintf(format, args...)} }

// SyntaxError is a query that does not parse. It has no kind: it is the user's.
type SyntaxError struct {
	Msg string
	Pos int // byte in the query
}

// Error returns what is wrong, as DuckDB says it.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("syntax error %s (byte %d of the query)", e.Msg, e.Pos)
}

// Unsupported is what DuckDB may run and this package does not.
func Unsupported(format string, args ...any) error {
	return fault.New(fault.Unsupported, "query", fault.NoOffset, format+": this needs DuckDB, which the command chaski-full has", args...)
}
