package tables

import (
	"context"
	"errors"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// SQL runs SQL over tables: package format/tables/query, where a program imports it.
type SQL interface {
	// Where returns the rows of a table that meet a condition, ascending.
	Where(ctx context.Context, t *Table, condition string) ([]int, error)
	// Run runs a query over the tables that from returns by name.
	Run(ctx context.Context, text string, from func(ctx context.Context, name string) (*Table, error), l QueryLimits) (
		*Table, error)
}

var registeredSQL SQL

// RegisterSQL makes an engine the one of FindSQL.
func RegisterSQL(s SQL) { registeredSQL = s }

// FindSQL returns the engine that this program imports. Without one the error is fault.Unsupported.
func FindSQL() (SQL, error) {
	if registeredSQL == nil {
		return nil, fault.NotImported("sql", "runs SQL", "format/tables/query")
	}
	return registeredSQL, nil
}

// QueryLimits bound one query.
type QueryLimits struct {
	// Time is how long it may run, with the loading of the columns that it uses, and then how long it may take to
	// compute a column of its result. Default DefaultQueryTime.
	Time time.Duration
	// Memory is how many bytes the columns may take that it computes. Default: a quarter of the memory of the machine
	// or control group, from 512 MiB to 4 GiB.
	Memory int64
}

// DefaultQueryTime lets a join of two tables of some million rows with remote columns end: it takes about a minute.
const DefaultQueryTime = 5 * time.Minute

// Within calls f with a context that ends after the time of a query. If f failed because of that, the error says so.
func (l QueryLimits) Within(ctx context.Context, f func(ctx context.Context) error) error {
	duration := l.Time
	if duration <= 0 {
		duration = DefaultQueryTime
	}
	timed, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	err := f(timed)
	// Where ctx itself has ended, its deadline was the caller's, which must not be blamed on --sql-time.
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && timed.Err() != nil {
		return fault.New(fault.Limit, "query", "it runs for longer than %v (--sql-time)", duration)
	}
	return err
}

// NoTable returns the error for a table that does not exist.
func NoTable(name string, names []string) error {
	return fault.New(fault.NotFound, "query", "no table %q; there are %s", name, fault.Names(names))
}
