package query

import (
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/tools/testkit/named"
)

// TestQueriesAreCharged: a query of some bytes makes a large table of a small one. What does not fit into the budget is
// refused before it is made, what fits is charged with at least its size, and all of it comes back.
func TestQueriesAreCharged(t *testing.T) {
	const text = 256
	rows := int64(300)
	if testing.Short() { // a ninth of the bytes
		rows = 100
	}
	s := tables.NewStrings(slices.Repeat([]string{strings.Repeat("x", text)}, int(rows)), nil)
	n := tables.NewInts(sql.Int64, make([]int64, rows), nil)
	data := named.Tables(map[string]*tables.Table{"t": tables.FromVectors([]string{"s", "n"}, []*tables.Vector{s, n})})
	for _, c := range []struct {
		sql  string
		size int64 // of the result, or of the row numbers of the join
	}{
		{"SELECT count(*) FROM t a, t b", 2 * 4 * rows * rows},
		{"SELECT a.n FROM t a JOIN t b ON a.n = b.n", 8 * rows * rows},
		{"SELECT a.s FROM t a, t b", text * rows * rows},
		{"SELECT a.s || b.s FROM t a, t b", 2 * text * rows * rows},
		{"SELECT repeat(s, 100) FROM t", 100 * text * rows},
	} {
		run := func(limit int64) (charged int64, err error) {
			b := budget.New(limit)
			a, err := b.Open(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				a.Close()
				if b.Used() != 0 {
					t.Errorf("%s: %d bytes stay charged", c.sql, b.Used())
				}
			}()
			ctx := budget.With(t.Context(), a)
			r, err := Run(ctx, c.sql, data)
			if err == nil {
				_, err = r.At(ctx, 0)
			}
			return a.Held(), err
		}
		if charged, err := run(1 << 30); err != nil || charged < c.size {
			t.Errorf("%s: %d bytes are charged, %d are made: %v", c.sql, charged, c.size, err)
		}
		if _, err := run(c.size); fault.KindOf(err) != fault.Limit {
			t.Errorf("%s in %d bytes: %v", c.sql, c.size, err)
		}
	}
}
