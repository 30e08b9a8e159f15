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

// Limits of one query.
type Limits struct {
	// Time is how long it may run, with the loading of the columns that it uses, and then how long it may take to
	// compute a column of its result. Default DefaultTime.
	Time time.Duration
	// Memory is how many bytes the columns may take that it computes. Default: a quarter of the memory of the machine
	// or control group, from 512 MiB to 4 GiB.
	Memory int64
}

// DefaultTime lets a join of two tables of some million rows with remote columns end: it takes about a minute.
const DefaultTime = 5 * time.Minute

// defaultMemory returns the default of Limits.Memory.
func defaultMemory() int64 { return min(max(procs.Memory()/4, 512<<20), 4<<30) }

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

// RunWithin runs a query as Run does, within limits.
func RunWithin(ctx context.Context, text string, from Tables, l Limits) (out *tables.Table, err error) {
	err = l.Within(ctx, func(ctx context.Context) error {
		out, err = start(ctx, text, from, l)
		return err
	})
	return out, err
}

// start runs a query as far as its result says what its columns are.
func start(ctx context.Context, text string, from Tables, l Limits) (*tables.Table, error) {
	sel, err := ast.Parse(text)
	if err != nil {
		return nil, err
	}
	used := &held{limit: l.Memory, limits: l}
	if used.limit <= 0 {
		used.limit = defaultMemory()
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
