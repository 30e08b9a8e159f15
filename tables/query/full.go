package query

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/tables/query/internal/sql"
)

// SyntaxError is the error of a query that does not parse. It has no kind, because no file is at fault.
type SyntaxError = sql.SyntaxError

// BindError is the error of a query that parses but whose types do not fit. It has no kind, because no file is at
// fault.
type BindError = sql.BindError

// Full runs a query with DuckDB over the tables with the given names, in at most memory bytes beside the tables (0: a
// default).
type Full func(ctx context.Context, text string, names []string, tables Tables, memory int64) (*tables.Table, error)

// Limits of one query, of this package or of Full.
type Limits struct {
	// Time is how long it may run, with the loading of the columns that it uses, and then how long it may take to
	// compute a column of its result. Default DefaultTime.
	Time time.Duration
	// Memory is how many bytes the columns may take that it computes, or the process of Full. Default DefaultMemory.
	Memory int64
}

// DefaultTime lets a join of two tables of some million rows with remote columns end: it takes about a minute.
const DefaultTime = 5 * time.Minute

// DefaultMemory returns a quarter of the memory of the machine or control group, from 512 MiB to 4 GiB.
func DefaultMemory() int64 { return min(max(procs.Memory()/4, 512<<20), 4<<30) }

// Within calls f with a context that ends after the time of a query. If f failed because of that, the error says so.
func (l Limits) Within(ctx context.Context, f func(ctx context.Context) error) error {
	duration := l.Time
	if duration <= 0 {
		duration = DefaultTime
	}
	timed, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	err := f(timed)
	// Where ctx itself has ended, its deadline was the caller's, which must not be blamed on --sql-time.
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && timed.Err() != nil {
		return fault.New(fault.Limit, "query", fault.NoOffset, "it runs for longer than %v (--sql-time)", duration)
	}
	return err
}

// RunOr runs a query as Run does, within limits. If this package refuses it, it runs the query by full, which may be
// nil.
func RunOr(
	ctx context.Context, text string, names []string, from Tables, full Full, l Limits,
) (out *tables.Table, err error) {
	err = l.Within(ctx, func(ctx context.Context) error {
		var refused error
		if out, refused = runWithin(ctx, text, from, l); full == nil || !Refused(refused) {
			return refused
		}
		out, err = full(ctx, text, names, from, l.Memory)
		return Better(refused, err)
	})
	return out, err
}

func runWithin(ctx context.Context, text string, from Tables, l Limits) (*tables.Table, error) {
	sel, err := ast.Parse(text)
	if err != nil {
		return nil, err
	}
	used := &held{limit: l.Memory, limits: l}
	if used.limit <= 0 {
		used.limit = DefaultMemory()
	}
	query := &run{s: sel, b: bind.New(ctx, functionLibrary), held: used}
	if err := query.from(ctx, from); err != nil {
		return nil, err
	}
	if err := query.bind(); err != nil {
		return nil, err
	}
	return query.result(ctx)
}

// held counts the bytes of the columns that a query computed.
type held struct {
	bytes  atomic.Int64
	limit  int64
	limits Limits
}

func (h *held) hold(n int64) error {
	if h.bytes.Add(n) > h.limit {
		return fault.New(fault.Limit, "query", fault.NoOffset,
			"the columns that it computes take more than %d bytes of memory (--sql-memory)", h.limit)
	}
	return nil
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
