package query

import (
	"bufio"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/tools/testkit/named"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// analystQueries are the queries of testdata/analyst.
func analystQueries(t testing.TB) []string {
	t.Helper()
	f, err := os.Open("testdata/analyst/queries.sql")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if s := lines.Text(); s != "" && !strings.HasPrefix(s, "--") {
			out = append(out, s)
		}
	}
	return out
}

// FuzzRun promises that no query takes long, and that a query gives the same rows each time.
func FuzzRun(f *testing.F) {
	for _, sql := range analystQueries(f) {
		f.Add(strings.NewReplacer("cloud_cover", "score", "datetime", "born", "region", "name", "bands", "tags",
			"class", "age").Replace(sql))
	}
	for _, sql := range []string{
		`SELECT "id", len(tags) AS d, tags[1] FROM data WHERE name LIKE '%a_' ESCAPE '!' ` +
			`ORDER BY 1 DESC NULLS FIRST LIMIT 4 OFFSET 1`,
		"SELECT age k, count(*) n, avg(score) FROM data GROUP BY 1 HAVING n > 1 ORDER BY n, k",
		"select a.*, b.id from data a join l1 b on a.id = b.id and b.age between 1 and 3.5",
		"select DATE '2015-01-01', TIMESTAMP '2015-01-01 10:00:00', -1.5e3, id//2%3 from data",
		"select distinct lower(name)||'x', coalesce(age, 0) from data where born > '1999-01-01' or not (big " +
			"in (1, null))",
	} {
		f.Add(sql)
	}
	g := &grammar{rng: rng(7)}
	for range 200 {
		f.Add(strings.NewReplacer("f64", "score", "i8", "age", "k", "id", "s", "name").Replace(g.query()))
	}
	p := people()
	tables := named.Tables(map[string]*tables.Table{"data": p, "l1": p})
	f.Fuzz(func(t *testing.T, sql string) {
		if len(sql) > 2000 {
			return
		}
		taken.Check(t, len(sql), taken.FactorSQL, func() { _, _ = ast.Parse(sql) })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		defer func(start time.Duration) {
			if d := cputime.Used() - start; d > 20*time.Second { // all seeds together take 2 s
				t.Errorf("%q: %v", sql, d)
			}
		}(cputime.Used())
		rows := func(sql string) ([]string, error) {
			got, err := Run(ctx, sql, tables)
			if err != nil || got.Len() > 1000 || len(got.Columns()) > 100 {
				return nil, err
			}
			cols, err := valuesOfAll(ctx, got)
			if err != nil {
				return nil, err
			}
			out := make([]string, got.Len())
			for r := range out {
				for _, c := range cols {
					out[r] += string(c.AppendJSON(nil, r)) + " "
				}
			}
			return out, nil
		}
		first, err := rows(sql)
		if err != nil && ctx.Err() != nil {
			t.Fatalf("%q: %v", sql, err)
		}
		if again, _ := rows(sql); !slices.Equal(first, again) {
			t.Fatalf("%q: %q, and then %q", sql, first, again)
		}
	})
}
