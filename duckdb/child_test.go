package duckdb

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query"
)

// TestMain makes this binary the process of a query too.
func TestMain(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

func isolated(t *testing.T, sql string, memory int64) (*tables.Table, error) {
	t.Helper()
	if !canIsolate {
		t.Skip("processes have no bounds here")
	}
	return Isolated(t.Context(), sql, []string{"data"}, query.Map(map[string]*tables.Table{"data": sample()}), memory)
}

// TestIsolatedRoundTrip promises that every value passes through the process of a query unchanged, and that errors keep
// their kinds.
func TestIsolatedRoundTrip(t *testing.T) {
	in := sample()
	out, err := isolated(t, "SELECT * FROM data", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rows(t, out), rows(t, in); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for sql, kind := range map[string]error{
		"SELECT nosuch FROM data": fault.NotFound, "FROM glob('/*')": fault.Unsupported,
	} {
		if _, err := isolated(t, sql, 0); !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", sql, err, kind)
		}
	}
	if out, err = isolated(t, "SELECT getenv('PATH') AS p", 0); err == nil && strings.Contains(rows(t, out), "/") {
		t.Errorf("a query reads the environment: %s", rows(t, out))
	}
}

// TestMemoryOfTheProcess promises that a query which takes memory that DuckDB does not count ends with kind limit.
func TestMemoryOfTheProcess(t *testing.T) {
	// Each doubles the text, to 4 GiB. A search for each byte took 14 s of processor time more.
	unit := strings.Repeat("a", 128)
	sql := "'" + unit + "'"
	for range 25 {
		sql = "replace(" + sql + ",'" + unit + "','" + unit + unit + "')"
	}
	_, err := isolated(t, "SELECT length("+sql+") AS n", leastMemory)
	if fault.KindOf(err) != fault.Limit {
		t.Errorf("%v, want a fault of kind limit", err)
	}
	// The next query is another process.
	if _, err := isolated(t, "SELECT 1 AS n", leastMemory); err != nil {
		t.Error(err)
	}
}

// TestIsolatedEnds promises that a query without an end is ended with its context.
func TestIsolatedEnds(t *testing.T) {
	if !canIsolate {
		t.Skip("processes have no bounds here")
	}
	sql := "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a) SELECT max(n) AS m FROM a"
	err := query.Limits{Time: 2 * time.Second}.Within(t.Context(), func(ctx context.Context) error {
		_, err := Isolated(ctx, sql, nil, query.Map(nil), leastMemory)
		return err
	})
	if fault.KindOf(err) != fault.Limit {
		t.Errorf("%v, want a fault of kind limit", err)
	}
}
