package query

import (
	"context"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/internal/procs"
)

// SyntaxError is the error of a query that does not parse. It lacks a kind, because the query is at fault and not a
// file.
type SyntaxError = sql.SyntaxError

// BindError is the error of a query that parses but whose types do not fit. It lacks a kind, because the query is at
// fault and not a file.
type BindError = sql.BindError

// defaultMemory returns the default of tables.QueryLimits.Memory.
func defaultMemory() int64 { return min(max(procs.Memory()/4, 512<<20), 4<<30) }

func init() { tables.RegisterSQL(engine{}) }

// engine implements tables.SQL.
type engine struct{}

func (engine) Where(ctx context.Context, t *tables.Table, condition string) ([]int, error) {
	return Where(ctx, t, condition)
}

func (engine) Run(ctx context.Context, text string, from func(context.Context, string) (*tables.Table, error),
	l tables.QueryLimits) (*tables.Table, error) {
	return RunWithin(ctx, text, from, l)
}

// RunWithin runs a query as Run does, within limits.
func RunWithin(ctx context.Context, text string, from Tables, l tables.QueryLimits) (out *tables.Table, err error) {
	err = l.Within(ctx, func(ctx context.Context) error {
		out, err = start(ctx, text, from, l)
		return err
	})
	return out, err
}

// Check returns the syntax error of a query, if it has one.
func Check(text string) error {
	_, err := ast.Parse(text)
	return err
}

// start runs a query as far as its result says what its columns are.
func start(ctx context.Context, text string, from Tables, l tables.QueryLimits) (*tables.Table, error) {
	sel, err := ast.Parse(text)
	if err != nil {
		return nil, err
	}
	used := &held{limit: l.Memory, limits: l}
	if used.limit <= 0 {
		used.limit = defaultMemory()
	}
	query := &run{s: sel, b: bind.New(ctx, functionLibrary), memory: used}
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
	limits tables.QueryLimits
}

func (h *held) hold(n int64) error {
	if h.bytes.Add(n) > h.limit {
		return fault.New(fault.Limit, "query",
			"the columns that it computes take more than %d bytes of memory (--sql-memory)", h.limit)
	}
	return nil
}
