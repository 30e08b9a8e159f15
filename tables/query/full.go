package query

import (
	"context"
	"errors"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
)

// SyntaxError is the error of a query that does not parse. It has no kind, because no file is at fault.
type SyntaxError = sqlerr.SyntaxError

// BindError is the error of a query that parses but whose types do not fit. It has no kind, because no file is at
// fault.
type BindError = sqlerr.BindError

// Full runs a query with DuckDB over the tables with the given names.
type Full func(ctx context.Context, sql string, names []string, tables Tables) (*tables.Table, error)

// RunOr runs a query as Run does. If this package refuses it, it runs the query by full, which may be nil.
func RunOr(ctx context.Context, sql string, names []string, tables Tables, full Full) (*tables.Table, error) {
	t, err := Run(ctx, sql, tables)
	if full == nil || !Refused(err) {
		return t, err
	}
	out, fullErr := full(ctx, sql, names, tables)
	return out, Better(err, fullErr)
}

// Refused reports whether an error is about the query and not about the tables: DuckDB, whose SQL is larger, may run
// the query all the same.
func Refused(err error) bool {
	return fault.KindOf(err) == fault.Unsupported || errors.As(err, new(*SyntaxError)) ||
		errors.As(err, new(*BindError))
}

// Better chooses between the errors of this package and of full, for a query that this package refused: its own, which
// is in the user's terms, unless it only says that the query needs DuckDB.
func Better(err, full error) error {
	if full == nil || fault.KindOf(err) == fault.Unsupported {
		return full
	}
	return err
}
