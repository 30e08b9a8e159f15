package duckdb

import (
	"context"
	"errors"
	"fmt"
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

// TestWireIsChecked promises that a vector whose parts do not fit together is refused.
func TestWireIsChecked(t *testing.T) {
	text, num := tables.Type{Kind: tables.String}, tables.Type{Kind: tables.Int64, Bits: 64}
	list := tables.Type{Kind: tables.List, Elem: &num}
	ints := &wireVector{Type: num, N: 2, Ints: []int64{1, 2}}
	for i, w := range []*wireVector{
		nil, {Type: num, N: -1}, {Type: num, N: 3, Ints: []int64{1}},
		{Type: num, N: 1, Ints: []int64{1}, Nulls: []bool{true, true}},
		{Type: text, N: 1, Offsets: []uint32{0}}, {Type: text, N: 1, Offsets: []uint32{0, 5}, Data: []byte("abc")},
		{Type: text, N: 2, Offsets: []uint32{0, 2, 1}, Data: []byte("abc")},
		{Type: text, N: 1, Offsets: []uint32{1, 2}, Data: []byte("abc")},
		{Type: list, N: 1, Offsets: []uint32{0, 3}, Children: []*wireVector{ints}},
		{Type: list, N: 1, Offsets: []uint32{0, 1}},
		{Type: tables.Type{Kind: tables.Struct, Fields: []tables.Column{{Name: "a", Type: num}}}, N: 1,
			Children: []*wireVector{ints}},
		{Type: tables.Type{Kind: tables.Decimal, Precision: 38}, N: 1, Ints: []int64{1}},
		{Type: tables.Type{Kind: 200}},
	} {
		if v, err := w.value(maxNested); err == nil {
			t.Errorf("case %d is taken: %s", i, fmt.Sprint(v.Len()))
		}
	}
}
