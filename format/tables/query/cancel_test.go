package query_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/query"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// lateEnd is a context that ends when it is asked for the third time whether it has. A query asks before each batch of
// rows, and then in between.
type lateEnd struct {
	context.Context
	asked *int
}

func (c lateEnd) Err() error {
	if *c.asked++; *c.asked >= 3 {
		return context.Canceled
	}
	return nil
}

// nested is a text that is doubled n times, one character after the other.
func nested(n int) string {
	text := "'x'"
	for range n {
		text = "replace(" + text + ", 'x', 'xx')"
	}
	return text
}

// long are conditions that take long for a single row, or for one batch of rows.
var long = []struct {
	rows int
	sql  string
}{
	{1, "length(" + nested(40) + ") > 0"},
	{100, "length(" + nested(20) + ") > 0"},
	{1, "replace(repeat('x', 4000000), 'x', '') = ''"},
	{1, "upper(repeat('x', 4000000)) = ''"},
	{1, "repeat('a', 4000000) LIKE '%" + strings.Repeat("a", 1<<16) + "_b%'"},
	{1000, "repeat('a', 100000) LIKE '%b_'"},
	{1000, "regexp_matches(repeat('a', 100000), '(a|aa|aaa)*b$')"},
	{1000, "contains(repeat('a', 100000), 'b')"},
	{1000, "regexp_extract(repeat('a', 100000), '[^a]b') = 'x'"},
}

// TestQueriesEnd promises that a query whose caller is gone ends within some bytes, also in the middle of a row.
func TestQueriesEnd(t *testing.T) {
	for _, c := range long {
		asked := 0
		ctx := lateEnd{t.Context(), &asked}
		made := corpus.Allocated(func() {
			_, err := query.Run(ctx, "SELECT i FROM data WHERE "+c.sql, many(c.rows))
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%.60s: %v after %d looks at the context", c.sql, err, asked)
			}
		})
		if made > 64<<20 {
			t.Errorf("%.60s: %d MiB were made", c.sql, made>>20)
		}
	}
}

// TestStringsOfABatchAreCharged: strings that are made within one batch of rows are charged before they are made, and
// come back when the query has ended.
func TestStringsOfABatchAreCharged(t *testing.T) {
	if testing.Short() {
		t.Skip("measures the memory of one goroutine")
	}
	const limit = 16 << 20
	for sql, fits := range map[string]bool{
		"length(" + nested(18) + ") > 0":          true,
		"length(" + nested(40) + ") > 0":          false,
		"length(repeat('x', 10000000)) > 0":       false,
		"length(upper(repeat('x', 6000000))) > 0": false,
	} {
		b := budget.New(limit)
		a, err := b.Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		var out []int
		made := corpus.Allocated(func() {
			data, _ := many(1)(t.Context(), "data")
			out, err = query.Where(budget.With(t.Context(), a), data, sql)
		})
		switch {
		case fits && (err != nil || len(out) != 1):
			t.Errorf("%.60s: %v, %v", sql, out, err)
		case !fits && fault.KindOf(err) != fault.Limit:
			t.Errorf("%.60s: %v, want a fault of kind limit", sql, err)
		case made > 5*limit: // what grows by a quarter each time makes five times as much as it has in the end
			t.Errorf("%.60s: %d MiB were made", sql, made>>20)
		}
		if a.Held() != 0 {
			t.Errorf("%.60s: %d bytes stay charged", sql, a.Held())
		}
		a.Close()
	}
}
