package query

import (
	"context"
	"errors"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
)

// SyntaxError is a query that does not parse. It has no kind: it is the user's.
type SyntaxError = sqlerr.SyntaxError

// BindError is a query that parses but means nothing: its types do not fit. It has no kind: it is the user's.
type BindError = sqlerr.BindError

// Full runs a query with all of DuckDB, over the tables with some names.
type Full func(ctx context.Context, sql string, names []string, tables Tables) (*tables.Table, error)

// RunOr runs a query as Run does and, where this package refuses it, by full, which may be nil.
func RunOr(ctx context.Context, sql string, names []string, tables Tables, full Full) (*tables.Table, error) {
	t, err := Run(ctx, sql, tables)
	if full == nil || !Refused(err) {
		return t, err
	}
	out, fullErr := full(ctx, sql, names, tables)
	return out, Better(err, fullErr)
}

// Refused reports whether an error is about the query itself, and not about the tables: DuckDB, whose SQL is larger, may
// run the query all the same.
func Refused(err error) bool {
	return fault.KindOf(err) == fault.Unsupported || errors.As(err, new(*SyntaxError)) || errors.As(err, new(*BindError))
}

// Better returns the error to show where this package refused a query, and full returned another: that of this package if
// both refused it, unless it says no more than that it needs DuckDB.
func Better(err, full error) error {
	if full == nil || fault.KindOf(err) == fault.Unsupported {
		return full
	}
	return err
}
