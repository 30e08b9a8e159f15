package query_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query"
	"github.com/chaski-eo/chaski/tools/testkit/named"
)

// many is a table of n rows.
func many(n int) query.Tables {
	v := make([]int64, n)
	t := tables.FromVectors([]string{"i"},
		[]*tables.Vector{tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, v, nil)})
	return named.Tables(map[string]*tables.Table{"data": t})
}

// TestMemoryOfResult promises that the columns that a query computes take no more than the limit together.
func TestMemoryOfResult(t *testing.T) {
	rows, limit := 100_000, int64(64<<20)
	if testing.Short() { // a tenth of both
		rows, limit = rows/10, limit/10
	}
	for sql, fits := range map[string]bool{
		"SELECT i + 1 AS j FROM data":                                   true,
		"SELECT repeat('x', 100) AS s FROM data":                        true,
		"SELECT repeat('x', 1000) AS s FROM data":                       false,
		"SELECT repeat('x', 400) AS a, repeat('y', 400) AS b FROM data": false,
	} {
		out, err := query.RunWithin(t.Context(), sql, many(rows), tables.QueryLimits{Memory: limit})
		for i := 0; err == nil && i < len(out.Columns()); i++ {
			_, err = out.At(t.Context(), i)
		}
		switch {
		case fits && err != nil:
			t.Errorf("%s: %v", sql, err)
		case !fits && (fault.KindOf(err) != fault.Limit || !strings.Contains(err.Error(), "--sql-memory")):
			t.Errorf("%s: %v, want a fault of kind limit that names the flag", sql, err)
		}
	}
}

// TestTimeOfQuery promises that a query whose time is over ends as one of kind limit, and that one whose caller goes
// does not.
func TestTimeOfQuery(t *testing.T) {
	slow := func(ctx context.Context, _ string) (*tables.Table, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	const sql = "SELECT i FROM data"
	_, err := query.RunWithin(t.Context(), sql, slow, tables.QueryLimits{Time: time.Millisecond})
	if fault.KindOf(err) != fault.Limit || !strings.Contains(err.Error(), "--sql-time") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = query.RunWithin(ctx, sql, slow, tables.QueryLimits{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
